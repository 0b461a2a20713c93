"""Write the JSON Schemas beside this file: `python -m evictstream.models.messages.schemas`."""

from pathlib import Path

from evictstream.models.messages.schemas import schema_texts

if __name__ == "__main__":
    for name, text in schema_texts().items():
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")

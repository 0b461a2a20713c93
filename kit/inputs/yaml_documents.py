"""YAML cut into its documents, each given as JSON: what is read behind this need not know which of both it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

import yaml  # type: ignore[import-untyped]

from evictstream.kit.inputs.json_documents import parts
from evictstream.kit.inputs.pieces import Broken, Document, InputPiece
from evictstream.kit.inputs.yaml_loader import ObjectLoader
from evictstream.streams.errors import ObjectFileError

MOST_YAML_BYTES: Final = 4 * 2**20
"""Largest file in YAML, which is read about fifty times slower than JSON: this much takes 20 seconds."""

HALF_A_CHARACTER: Final = "a text holds half of a surrogate pair"

_BEGINNING: Final = re.compile(
    rb"""\A (?: [ \t\r]* (?: \#[^\n]* | ---[ \t\r]* | %YAML[^\n]* )? \n )*  # nothing, comments, YAML's own lines
    (?: [ \t]* (?: -[ ]+ )? ["']? (?: apiVersion | kind | metadata | items | spec | status ) ["']? [ \t]* :
      | \s* \{ \s* [A-Za-z_][\w.-]* \s* : (?=\s) )""",
    re.VERBOSE,
)
"""How an object of Kubernetes begins in YAML: a known field, or flow style, whose names need no quotes."""


def is_yaml(beginning: bytes) -> bool:
    """Tell by the first bytes of a text."""
    return _BEGINNING.match(beginning) is not None


def yaml_documents(source: str, stream: BinaryIO) -> Iterator[InputPiece]:
    """Read a text to its end, and give its documents, lists taken apart.

    Args:
        source: its name, for people.
        stream: UTF-8.

    Raises:
        ObjectFileError: it is too large. `UnicodeDecodeError`: it is not UTF-8.
    """
    content = stream.read(MOST_YAML_BYTES + 1)
    if len(content) > MOST_YAML_BYTES:
        raise ObjectFileError(source, f"it has more than {MOST_YAML_BYTES} bytes of YAML; JSON may be longer")
    line = 1
    loader = None
    try:
        loader = ObjectLoader(content.decode())
        while loader.check_node():
            node = loader.get_node()
            line = node.start_mark.line + 1
            document = loader.construct_document(node)
            if document is not None:
                text = json.dumps(document, ensure_ascii=False).encode()
                yield from parts(line, text) or (Document(line, text),)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield Broken(mark.line + 1 if mark else line, f"not YAML: {error.problem or error.context}")
    except UnicodeEncodeError:
        yield Broken(line, HALF_A_CHARACTER)
    except (yaml.YAMLError, ValueError, TypeError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        yield Broken(line, f"not YAML: {error}")
    except RecursionError:
        yield Broken(line, "nested too deeply")
    finally:
        if loader is not None:
            loader.dispose()

"""A file cut into documents, whatever it is: JSON or YAML, packed or not, in any of the encodings that people have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from evictstream.kit.inputs.decoding import PACKED_ERRORS, decoded
from evictstream.kit.inputs.json_documents import LARGEST_DOCUMENT_BYTES, documents
from evictstream.kit.inputs.pieces import Broken, InputPiece
from evictstream.kit.inputs.yaml_documents import is_yaml, yaml_documents
from evictstream.streams.errors import RecordingError

CUT: Final = "the compressed data is cut off somewhere after this line"

_BEGINNING_BYTES: Final = 65_536  # comments may stand first


def pieces_of(source: str, stream: BinaryIO, *, text_is_yaml: bool = False) -> Iterator[InputPiece]:
    """Cut a file into documents and values of lists.

    Args:
        source: its name, for people.
        stream: its bytes.
        text_is_yaml: what begins like neither JSON nor an object in YAML is YAML too; else lines of JSON are sought.

    Raises:
        ObjectFileError: it is of a kind that is known and not read, or too much YAML.
        RecordingError: it cannot be read any further.
    """
    line = 1
    try:
        text = decoded(source, stream)
        beginning = text.peek(_BEGINNING_BYTES)
        if is_yaml(beginning) or (text_is_yaml and not beginning.lstrip().startswith((b"{", b"["))):
            pieces = yaml_documents(source, text)
        else:
            pieces = documents(text, LARGEST_DOCUMENT_BYTES)
        for piece in pieces:
            line = piece.line
            yield piece
    except EOFError:
        yield Broken(line, CUT)
    except UnicodeDecodeError as error:
        raise RecordingError(source, line=line, reason=f"it is not {error.encoding.upper()}") from error
    except PACKED_ERRORS as error:
        raise RecordingError(source, line=line, reason=str(error)) from error

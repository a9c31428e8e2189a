"""Names of `source_text`, for what is read the former way."""

from gpureport.importers.source_text import Piece, head, head_text, is_plain_text, pieces

__all__ = ["Piece", "head", "head_text", "is_plain_text", "pieces"]

"""Bytes of a file to lines of UTF-8: compression, encodings, quotes, stray bytes.

Imports no other room of the importers.
A new kind of compressed or encoded file is handled here.
"""

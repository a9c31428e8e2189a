"""What commands print besides their answer: progress, how a source was understood, errors.

Imports click.
Everything printed on standard error is worded here.
"""

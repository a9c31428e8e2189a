"""From what a person names to recordings with their analyses.

`words` says what a word names, and looks runs up in the store; `given` hands the options to importers; `readings`
finds runs without reading them, and which sources are one run; `recordings` reads and analyses them; `steps` groups
them.
"""

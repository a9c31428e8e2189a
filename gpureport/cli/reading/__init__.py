"""From what a person names to recordings with their analyses.

`words` says what a word names, `given` hands the options to importers, `joining` says which sources are one run,
`readings` finds runs without reading them, `recordings` reads them, `stored` looks them up in the store and puts them
there, `steps` groups them, `analyses` judges them.
"""

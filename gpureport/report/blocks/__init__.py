"""A report as one list of blocks, which every format sets without knowing what they are about.

`opening` has what a reader sees first and a few blocks for each finding, `reference` what pages fold away and paper
appends. What several runs have in common is said once, with the runs that it holds for.
"""

"""`python -m gpureport`."""

from gpureport.cli import main

main()

"""The head of a report: headline, lead, caveats and four figures."""

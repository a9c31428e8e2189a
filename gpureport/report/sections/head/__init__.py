"""The head of a report: headline, lead, doubts and four figures."""

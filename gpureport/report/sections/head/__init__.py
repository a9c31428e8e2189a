"""The head of a report: the result in a sentence, the four figures, what the verdict leaves out."""

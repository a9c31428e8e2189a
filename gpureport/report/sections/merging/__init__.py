"""Statements that hold for several runs, each made once with the runs that it holds for."""

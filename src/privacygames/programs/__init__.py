"""The mathematics as linear programs: one builder per program of the paper, one function per family of rows."""

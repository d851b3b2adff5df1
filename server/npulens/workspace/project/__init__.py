"""What the files of a project say together, so that one can be judged with what counts for it."""

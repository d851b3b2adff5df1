"""What starts a program: variables, commands, batch scripts, settings, advice on speed."""

"""Options and output shared by all commands, also by the commands of kinds."""

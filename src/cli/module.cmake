# CLI11 is header-only; only command_line.cc includes it.

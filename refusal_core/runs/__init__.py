"""Training runs from the files people have: readers by content, and what the files of one run say together."""

"""What a verb shows: lines, tables, documents, pictures; on a terminal or in a file."""

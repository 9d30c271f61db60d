"""A Delta table: its log, header, data files, footprints of transactions, conflicts."""

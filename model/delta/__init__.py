"""Delta table: log, header, data files, footprints of transactions, conflicts."""

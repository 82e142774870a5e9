"""Any number of photos to rows: here or on a cluster, in one file or in parts."""

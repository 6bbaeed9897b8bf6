"""Rules about the files that packing puts into archives."""

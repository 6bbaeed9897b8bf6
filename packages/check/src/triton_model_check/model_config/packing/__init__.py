"""The files of models that packing puts into archives."""

"""Generated edits of templates, with what AWS does for each, to assess a rehearsal."""

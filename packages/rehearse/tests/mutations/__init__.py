"""Generated edits of templates, with what AWS does for each, to judge a rehearsal by."""

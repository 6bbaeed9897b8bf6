def handler(_event, _context):
    return {}

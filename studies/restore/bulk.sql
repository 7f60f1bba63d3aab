SELECT pg_logical_emit_message(false, 'bulk', repeat('x', 100000));

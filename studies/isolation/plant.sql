ALTER TABLE history_lists ENABLE TRIGGER forget;

CREATE ROLE app;
GRANT SELECT ON orders TO app;
CREATE POLICY own ON orders TO app USING (state IN ('open', 'done'));
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;

-- Builds the data once.
CREATE TABLE items (
    id bigint PRIMARY KEY,
    note text
);
INSERT INTO items SELECT i, 'item ' || i FROM generate_series(1, :rows) AS i;
-- What each client writes of itself: it must be there after a crash if it was acknowledged.
CREATE TABLE writes_log (
    client int NOT NULL,
    seq bigint NOT NULL,
    chain bigint NOT NULL,
    item bigint NOT NULL,
    PRIMARY KEY (client, seq)
);
CREATE TABLE writes_state (
    client int PRIMARY KEY,
    seq bigint NOT NULL,
    chain bigint NOT NULL
);
VACUUM (ANALYZE) items;

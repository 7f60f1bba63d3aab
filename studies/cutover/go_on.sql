-- On the upgraded server: the subscription goes on where the old one has stopped, under the name that open.sql knows.
BEGIN READ WRITE;
ALTER SUBSCRIPTION copy RENAME TO new;
ALTER SUBSCRIPTION new ENABLE;
COMMIT

SELECT count(*) FROM counted;

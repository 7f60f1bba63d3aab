\set userid random(1, :rows)
SELECT engname, email FROM user_info WHERE userid = :userid;

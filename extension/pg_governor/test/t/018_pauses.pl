# Pauses end whatever waits for what, and the switches that turn pg_governor off reach them.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = governed_node('pauses', <<'EOC');
pg_governor.transaction_limit = 2
pg_governor.pools = 'other()'
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
EOC
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE ROLE lost LOGIN; CREATE TABLE things (n int);
	ALTER TABLE things OWNER TO plain');

sub paused
{
	my ($count) = @_;
	return $node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_sessions WHERE paused', $count);
}

sub pool_of
{
	my ($session) = @_;
	return $node->safe_psql('postgres', "SELECT pool FROM pg_governor_sessions WHERE pid = $session->{pid}");
}

my $admin = session($node);
my ($running, @clients) = map { session($node, user => 'plain') } 1 .. 3;

# a statement that is held has the lock of its table, which what runs may want
my $pauser = session($node);
$running->ask('BEGIN');
$pauser->tell("SELECT pg_governor_pause('default')");
ok($node->poll_query_until('postgres', 'SELECT paused FROM pg_governor_pools WHERE pool = \'default\' LIMIT 1'), 'a pause');
$clients[0]->tell('SELECT count(*) FROM things');
ok(paused(1), 'it holds a statement');
$running->ask('ALTER TABLE things ADD COLUMN m int');
is($clients[0]->settle, '0', 'which passes when a transaction waits for its table');
$running->ask('COMMIT');
$pauser->settle;
pass('so that the pause ends');
is($admin->ask("SELECT pg_governor_resume('default')"), '0', 'it held nobody any more');

# so may an advisory lock of a session that is held at BEGIN
$clients[0]->ask('SELECT pg_advisory_lock(1)');
$running->ask('BEGIN');
$pauser->tell("SELECT pg_governor_pause('default')");
$node->poll_query_until('postgres', 'SELECT paused FROM pg_governor_pools WHERE pool = \'default\' LIMIT 1') or die;
$clients[0]->tell('BEGIN');
$clients[1]->tell('BEGIN');
ok(paused(2), 'two blocks are held');
$running->tell('SELECT pg_advisory_xact_lock(1)');
$clients[0]->settle;
$clients[0]->ask('SELECT pg_advisory_unlock(1); COMMIT');
$running->settle;
$running->ask('COMMIT');
$pauser->settle;
is($admin->ask("SELECT pg_governor_resume('default')"), '1', 'the one whose lock is wanted passes, and no other one');
$clients[1]->settle;
$clients[1]->ask('COMMIT');

# two pauses at the same time
my $second = session($node);
$running->ask('BEGIN');
$_->tell("SELECT pg_governor_pause('default')") for ($pauser, $second);
ok($node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity
	WHERE pid IN ($pauser->{pid}, $second->{pid}) AND state = 'active' AND query LIKE '%pg_governor_pause%'", '2'),
	'two pauses wait for what runs');
$running->ask('COMMIT');
$_->settle for ($pauser, $second);
pass('and not for each other');

# moved out of a pause
$clients[0]->tell('BEGIN');
ok(paused(1), 'a session is held');
$admin->ask("SELECT pg_governor_move($clients[0]{pid}, 'other')");
$clients[0]->settle;
is(pool_of($clients[0]), 'other', 'moved to another pool it goes on there');
$clients[0]->ask('COMMIT');

# switched off
$clients[1]->tell('BEGIN');
ok(paused(1), 'a session is held');
set_all($node, enabled => 'off');
$clients[1]->settle;
$clients[1]->ask('COMMIT');
pass('enabled = off lets it go');
$admin->ask("SELECT pg_governor_pause('default')");
like($admin->errors, qr/ERROR:  a pause holds no session now, since pg_governor.enabled is off/, 'and another pause is an error');
set_all($node, enabled => 'on');
$clients[1]->tell('BEGIN');
ok(paused(1), 'switched on it holds again');
set_all($node, mode => 'observe');
$clients[1]->settle;
$clients[1]->ask('COMMIT');
pass('mode = observe lets it go');
$admin->ask('SELECT pg_governor_pause()');
like($admin->errors, qr/ERROR:  a pause holds no session now, since pg_governor.mode is observe/, 'and another pause is an error');
set_all($node, mode => 'enforce');
$admin->ask('SELECT pg_governor_resume()');

# a pool that is not listed
set_all($node, unknown_pool => 'error');
$node->safe_psql('postgres', "ALTER ROLE lost SET pg_governor.pool = 'nowhere'");
my $lost = session($node, user => 'lost');
sub begins { return $lost->ask("BEGIN;\nSELECT 1;\nCOMMIT") }
is(begins(), '', 'unknown_pool = error');
like($lost->errors, qr/ERROR:  there is no pool "nowhere"/, 'which says what is missing');
set_all($node, mode => 'observe');
is(begins(), '1', 'not in mode observe');
set_all($node, mode => 'enforce', enabled => 'off');
is(begins(), '1', 'not while it is off');
set_all($node, enabled => 'on', unknown_pool => 'default');

# the place of a pool that is gone is another pool's
is(pool_of($clients[0]), 'other', 'a session that was moved by hand');
set_all($node, pools => '');
set_all($node, pools => 'third()');
$clients[0]->ask('BEGIN');
is(pool_of($clients[0]), 'default', 'is not in the next pool that gets its place');
$clients[0]->ask('COMMIT');

# a pause waits for what runs one transaction after the other
$node->safe_psql('postgres', <<'EOS');
CREATE TABLE let_go (n int);
GRANT SELECT ON let_go TO plain;
CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
BEGIN WHILE NOT EXISTS (SELECT FROM let_go) LOOP FOR i IN 1 .. 100 LOOP COMMIT; END LOOP; END LOOP; END$$;
CREATE PROCEDURE links() LANGUAGE plpgsql AS $$
BEGIN WHILE NOT EXISTS (SELECT FROM let_go) LOOP FOR i IN 1 .. 100 LOOP COMMIT AND CHAIN; END LOOP; END LOOP; END$$
EOS
sub state_of
{
	my ($session) = @_;
	return $node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $session->{pid}");
}
# The rests make the part that a pipe holds, which may be one page, last longer than a look at the session.
my $chained = "BEGIN;\n" . (("COMMIT AND CHAIN;\n" x 20 . "\\! sleep 0.02\n") x 300) . 'COMMIT';
for my $series ([ 'a procedure that commits', 'CALL steps()' ], [ 'one that chains', 'CALL links()' ],
	[ 'a client that chains', $chained ])
{
	my ($name, $sql) = @$series;
	my $worker = session($node, user => 'plain');
	$worker->tell($sql);
	# a client writes as long as it is read
	$worker->pump while state_of($worker) eq 'idle';
	my $pause = session($node);
	$pause->tell("SELECT pg_governor_pause('default')");
	$node->poll_query_until('postgres', "SELECT bool_or(paused) FROM pg_governor_pools WHERE pool = 'default'") or die;
	# it asks fifty times a second
	my $until = time + 2;
	until ($pause->has_ended)
	{
		$worker->pump;
		next if !defined $until || time < $until;
		$node->safe_psql('postgres', 'INSERT INTO let_go VALUES (1)');
		$until = undef;
	}
	is(state_of($worker), 'idle', "$name has ended when the pause returns");
	$worker->settle;
	$admin->ask("SELECT pg_governor_resume('default')");
	$node->safe_psql('postgres', 'TRUNCATE let_go');
	$_->leave for ($worker, $pause);
}
# databases that are gone leave their places
for my $i (1 .. 17)
{
	$node->safe_psql('postgres', 'CREATE DATABASE gone');
	$node->safe_psql('postgres', "SELECT pg_governor_pause(database => 'gone')");
	$node->safe_psql('postgres', 'DROP DATABASE gone');
}
pass('dropped databases are not paused for ever');
nothing_left($node, 'pauses');

$node->stop;
done_testing();

# Work that a pause did not see, freezes that opened gates, errors that were eaten, and who must not wait.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = governed_node('defects', <<'EOC');
pg_governor.transaction_limit = 2
pg_governor.pools = 'other()'
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
EOC
$node->safe_psql('postgres', <<'EOC');
CREATE ROLE plain LOGIN;
CREATE TABLE steps (n int);
GRANT ALL ON steps TO plain;
GRANT EXECUTE ON FUNCTION pg_governor_pause(text, name, boolean) TO plain;
CREATE PROCEDURE many_steps() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 400 LOOP INSERT INTO steps VALUES (i); COMMIT; PERFORM pg_sleep(0.002); END LOOP;
END$$;
CREATE FUNCTION swallows() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN NULL; END;
    INSERT INTO steps VALUES (-1);
    RETURN 1;
END$$;
EOC

my $admin = session($node);
sub seen { return $node->safe_psql('postgres', $_[0]) }

# a pause waits for a command of many transactions, and for one that follows by AND CHAIN
my $worker = session($node, user => 'plain');
$worker->tell('CALL many_steps()');
$node->poll_query_until('postgres', 'SELECT count(*) > 3 FROM steps') or die;
$admin->ask("SELECT pg_governor_pause('default')");
is(seen('SELECT count(*) FROM steps'), '400', 'a pause waits for a procedure that commits');
$admin->ask("SELECT pg_governor_resume('default')");
$worker->settle;
seen('TRUNCATE steps');
$worker->ask('BEGIN; INSERT INTO steps VALUES (0)');
$worker->tell(join ";\n", map { "COMMIT AND CHAIN;\nINSERT INTO steps VALUES ($_)" } 1 .. 300);
$worker->tell('COMMIT');
$node->poll_query_until('postgres', 'SELECT count(*) > 3 FROM steps') or die;
$admin->ask("SELECT pg_governor_pause('default')");
my $then = seen('SELECT count(*) FROM steps');
usleep(300_000);
is(seen('SELECT count(*) FROM steps'), $then, 'and holds a block that chains: nothing goes on');
$admin->ask("SELECT pg_governor_resume('default')");
$worker->settle;

# a pause of all pools holds those that a reload adds
$admin->ask('SELECT pg_governor_pause()');
set_all($node, pools => 'other(), late()');
is(seen("SELECT DISTINCT paused FROM pg_governor_pools WHERE pool = 'late'"), 't', 'a pause of everything is one of a new pool');
$admin->ask('SELECT pg_governor_resume()');
is(seen('SELECT count(*) FROM pg_governor_pools WHERE paused'), '0', 'and ends with it');
set_all($node, pools => 'other()');

# a pause whose caller is cancelled or ends is none
my $busy = holder($node, user => 'plain');
my $caller = session($node);
$caller->tell("SELECT pg_governor_pause('default')");
$node->poll_query_until('postgres', "SELECT bool_or(paused) FROM pg_governor_pools WHERE pool = 'default'") or die;
$caller->cancel($node);
is(seen('SELECT count(*) FROM pg_governor_pools WHERE paused'), '0', 'a pause that is cancelled does not stay in force');
$caller->tell("SELECT pg_governor_pause('default')");
$node->poll_query_until('postgres', "SELECT bool_or(paused) FROM pg_governor_pools WHERE pool = 'default'") or die;
seen("SELECT pg_terminate_backend($caller->{pid})");
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_governor_pools WHERE paused'),
	'nor one whose session ends');
$caller = session($node);
$caller->ask("SELECT pg_governor_pause('other')");
$caller->tell('SELECT pg_governor_pause()');
$node->poll_query_until('postgres', "SELECT bool_or(paused) FROM pg_governor_pools WHERE pool = 'default'") or die;
$caller->cancel($node);
is(seen('SELECT string_agg(DISTINCT pool, \',\') FROM pg_governor_pools WHERE paused'), 'other',
	'but one that was there before does');
$caller->ask('SELECT pg_governor_resume()');
$busy->ask('COMMIT');

# who may pause may resume, whatever is paused; the wait has a name of its own
seen('GRANT EXECUTE ON FUNCTION pg_governor_resume(text, name) TO plain');
$worker->ask('SELECT pg_governor_pause()');
my $held = session($node, user => 'plain', quiet => 1);
$held->tell('BEGIN');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'GovernorPause'"),
	'a session that is held by a pause says so');
is($worker->ask('SELECT pg_governor_resume()'), '1', 'who has paused ends the pause');
$held->settle;
$held->ask('COMMIT');

# a doomed block stays doomed, also where the error is caught in a function that the fast path calls
seen('TRUNCATE steps');
my @holders = map { holder($node) } 1 .. 2;
my $doomed = session($node, user => 'plain');
$doomed->ask("SET pg_governor.user_queue_timeout = '20ms'");
$doomed->ask('BEGIN');
for my $try (1 .. 2)
{
	$doomed->errors;
	$doomed->ask('SELECT swallows()');
	like($doomed->errors, qr/ERROR/, "statement $try of a doomed block fails");
	$doomed->ask("ROLLBACK;\nBEGIN") if $try == 1;
}
$doomed->ask("ROLLBACK;\nBEGIN");
$doomed->errors;
$doomed->ask('\\lo_unlink 1');
like($doomed->errors, qr/ERROR:  canceling statement due to queue timeout/, 'so does a call by the fast-path interface');
$doomed->ask('ROLLBACK');
is(seen('SELECT count(*) FROM steps'), '0', 'and has done nothing');
$_->ask('COMMIT') for @holders;

# who chains goes to the end of the queue: two slots, four that chain, and one who queues behind two of them
seen('TRUNCATE steps');
$_->leave for @holders;
my @chains = map { session($node, user => 'plain') } 1 .. 4;
my $other = session($node, user => 'plain');
$_->ask('BEGIN') for @chains[ 0, 1 ];
my $place = 0;
for my $waiter (@chains[ 2, 3 ], $other)
{
	$waiter->tell('BEGIN');
	wait_for_queue($node, ++$place);
}
for my $turn (0 .. 2)
{
	$chains[$turn]->tell("COMMIT AND CHAIN;\nINSERT INTO steps VALUES (1)");
	($turn < 2 ? $chains[ $turn + 2 ] : $other)->settle;
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_governor_queue WHERE pid = $chains[$turn]{pid}"),
		'a session that chains queues where another one waits: ' . ($turn + 1));
}
is(seen("SELECT state FROM pg_governor_sessions WHERE pid = $other->{pid}"), 'running', 'so that everybody gets a turn');
$other->ask('COMMIT');
$chains[3]->ask('COMMIT');
for my $chain (@chains[ 0 .. 2 ])
{
	$chain->settle;
	$chain->ask('COMMIT');
}
nothing_left($node, 'chains');

# a reserved slot that becomes free is for a superuser who waits
set_all($node, transaction_limit => 1);
$node->safe_psql('postgres', 'ALTER SYSTEM SET pg_governor.reserved_slots = 1');
reload_all($node);
my @plain = (holder($node, user => 'plain'));
my $first = session($node);
$first->ask('BEGIN');
my $second = session($node);
$second->tell('BEGIN');
wait_for_queue($node, 1);
$first->ask('COMMIT');
$second->settle;
is(seen('SELECT reserved_taken FROM pg_governor_health'), '1', 'a superuser who queues gets the reserved slot that becomes free');
$second->ask('COMMIT');

# what controls the server never queues
set_all($node, gate_autocommit => 'on', autocommit_limit => 1, query_limit => 1);
my $query = session($node, user => 'plain');
my $sleeper = session($node, user => 'plain');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION pg_reload_conf() TO plain');
local $ENV{PGOPTIONS} = $GovernorTest::LOOK;
$sleeper->tell('SELECT pg_sleep(1000000)');
$node->poll_query_until('postgres', "SELECT sum(taken) = 1 FROM pg_governor_pools WHERE class = 'query'") or die;
is($query->ask('SELECT pg_reload_conf()'), 't', 'pg_reload_conf() does not queue');
$sleeper->cancel($node);
$_->ask('COMMIT') for @plain;
set_all($node, gate_autocommit => 'off', autocommit_limit => 0, query_limit => 0, reserved_slots => 0);
delete $ENV{PGOPTIONS};

# a refusal writes one line, and those of the next ten seconds are counted
set_all($node, transaction_limit => 1, max_queue => 1);
my $holder = holder($node, user => 'plain');
my $waiter = session($node, user => 'plain', quiet => 1);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
my $log = -s $node->logfile;
my $refused = session($node, user => 'plain');
my $before = gate_counts($node, 'refused');
my $began = time;
$refused->ask("BEGIN;\nSELECT 1;\nROLLBACK") for 1 .. 20;
my $took = time - $began;
my @lines = split /\n/, substr(slurp_file($node->logfile), $log);
is(gate_counts($node, 'refused') - $before, 20, '20 refusals');
cmp_ok(scalar(grep { /pg_governor: refused a session/ } @lines), '<=', 1 + int($took / 10),
	sprintf('at most one line in ten seconds of %.1f', $took));
is(join("\n", grep { /too many sessions|this transaction will fail|Nothing was done yet/ } @lines), '',
	'the warning and the error of each are not in the log');
$holder->ask('COMMIT');
$waiter->settle;
$waiter->ask('COMMIT');
set_all($node, max_queue => 0);

# the server's problems are those of the server, whoever asks
is($admin->ask('SET pg_governor.gate_begin = off; SELECT problems::text FROM pg_governor_health'),
	seen('SELECT problems::text FROM pg_governor_health'), 'problems do not depend on who asks');
$admin->ask('RESET pg_governor.gate_begin');

# a server that stood still for longer than a monitor may be silent opens no gate; nor does strict without a monitor
for my $strict ('off', 'on')
{
	set_all($node, strict => $strict, transaction_limit => 1, queue_timeout => 0, on_timeout => 'wait');
	my $owner = holder($node, user => 'plain');
	my @waiters = map { session($node, user => 'plain') } 1 .. 6;
	$_->tell('BEGIN') for @waiters;
	wait_for_queue($node, 6);
	my $monitor = seen('SELECT monitor_pid FROM pg_governor_health');
	my @waiting = map { $_->{pid} } @waiters;
	kill 'STOP', $monitor, @waiting;
	usleep(7_000_000);
	# Those who wait go on first; test/gates/doze has what they find when the monitor is late.
	kill 'CONT', @waiting, $monitor;
	wait_for_look($node);
	is(gate_counts($node, 'taken, queued'), '1|6', "strict = $strict: a freeze of 7 s lets nobody in");
	if ($strict eq 'on')
	{
		kill 'STOP', $monitor;
		ok($node->poll_query_until('postgres', "SELECT problems::text LIKE '%strict lets nobody in%' FROM pg_governor_health"),
			'health says that nobody is let in without a monitor');
		is(gate_counts($node, 'taken, queued'), '1|6', 'strict stays closed');
		ok(wait_for_log($node, qr/LOG:  pg_governor: the monitor has not moved for \d+ s/), 'and the log says so');
		kill 'CONT', $monitor;
	}
	set_all($node, transaction_limit => 0);
	$owner->ask('COMMIT');
	for my $waiter (@waiters) { $waiter->settle; $waiter->ask('COMMIT'); $waiter->leave }
	$owner->leave;
}
set_all($node, strict => 'off');
nothing_left($node, 'defects');
$node->stop;
done_testing();

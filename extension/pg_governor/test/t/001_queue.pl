# How a session waits, and every way in which it stops waiting.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = governed_node('queue', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.queue_timeout = 0
EOC

# set one setting for all, seen by the monitor when this returns
sub set
{
	my ($name, $value) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET pg_governor.$name = '$value'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('pg_governor.$name')", $value)
	  or die "$name did not become $value";
}

# cancel
my $holder = holder($node);
my $waiter = session($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
is( $node->safe_psql('postgres',
		"SELECT state, wait_event_type, wait_event, backend_xmin IS NULL
		FROM pg_stat_activity WHERE pid = $waiter->{pid}"),
	'active|Extension|' . ($version >= 170000 ? 'GovernorQueue' : 'Extension') . '|t',
	'how a waiter at BEGIN shows, without a snapshot');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($waiter->{pid})");
$waiter->settle;
like($waiter->errors, qr/canceling statement due to user request/, 'a waiter can be cancelled');
wait_for_queue($node, 0);
is($waiter->ask('SELECT 1'), '1', 'and is in no transaction then');
is(gate_counts($node, 'taken, queued, cancelled'), '1|0|1', 'it is counted as cancelled');

# statement_timeout counts the queue
$waiter->ask("SET statement_timeout = '50ms'");
$waiter->ask('BEGIN');
like($waiter->errors, qr/statement timeout/, 'statement_timeout ends the wait');
$waiter->ask('SET statement_timeout = 0');

# terminate, also with temporary tables, which are dropped in a new transaction
my $doomed = session($node);
$doomed->ask('CREATE TEMP TABLE t (n int)');
$doomed->tell('BEGIN');
wait_for_queue($node, 1);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($doomed->{pid})");
wait_for_queue($node, 0);
$node->poll_query_until('postgres',
	"SELECT count(*) FROM pg_stat_activity WHERE pid = $doomed->{pid}", '0');
is(gate_counts($node, 'taken, queued'), '1|0', 'a terminated waiter leaves the queue');

# a client that is gone
my $gone = session($node);
$gone->tell('BEGIN');
wait_for_queue($node, 1);
$gone->vanish;
wait_for_queue($node, 0);
pass('a waiter whose client has gone leaves the queue');

# a holder that is terminated, and one whose client is gone
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($holder->{pid})");
$waiter->settle;
is(gate_counts($node, 'taken, queued'), '1|0', 'a terminated holder hands its slot on');
my $next = session($node);
$next->tell('BEGIN');
wait_for_queue($node, 1);
$waiter->vanish;
$next->settle;
is(gate_counts($node, 'taken, queued'), '1|0', 'a vanished holder hands its slot on');

# an error gives the slot back before the ROLLBACK
$next->ask('SELECT 1 / 0');
is(gate_counts($node, 'taken'), '0', 'an aborted transaction has no slot');
$next->ask('ROLLBACK');

# timeouts
$next->ask('BEGIN');
$waiter = session($node);
$waiter->ask("SET pg_governor.queue_timeout = '100ms'; SET pg_governor.on_timeout = 'error'");
$waiter->ask("\\set VERBOSITY verbose\nBEGIN");
like($waiter->errors, qr/53G01: canceling statement due to queue timeout/, 'timeout: error');
$waiter->ask("SET pg_governor.on_timeout = 'run'");
$waiter->ask('BEGIN');
is(gate_counts($node, 'taken, queued, admits_timeout'), '2|0|1', 'timeout: run');
$waiter->ask('COMMIT');
is(gate_counts($node, 'taken'), '1', 'the slot beyond the limit disappears');
$waiter->ask("SET pg_governor.on_timeout = 'wait'");
$waiter->tell('BEGIN');
$node->poll_query_until('postgres',
	"SELECT max(timeouts) >= 4 FROM pg_governor_pools") or die;
is(gate_counts($node, 'taken, queued'), '1|1', 'timeout: wait');

# a queue that is too long
set('max_queue', 1);
my $refused = session($node);
$refused->ask("\\set VERBOSITY verbose\nBEGIN");
like($refused->errors, qr/53G02: too many sessions are waiting/, 'early refusal');
is(gate_counts($node, 'queued, refused'), '1|1', 'it is counted as refused');
set('max_queue', 0);
$next->ask('COMMIT');
$waiter->settle;
$waiter->ask('COMMIT');
nothing_left($node, 'timeouts');

# reserved slots: for superusers (the user of this test) and for named roles
$node->safe_psql('postgres', 'CREATE ROLE admin LOGIN; CREATE ROLE plain LOGIN');
set('reserved_roles', 'someone, admin');
set('reserved_slots', 2);
$holder = holder($node, user => 'plain');
my $super = holder($node);
my $admin = holder($node, user => 'admin');
is(gate_counts($node, 'taken, reserved, admits_reserved'), '1|2|2', 'reserved slots');
my $late = session($node, user => 'admin');
$late->tell('BEGIN');
wait_for_queue($node, 1);
pass('who finds them all taken queues');
my $plain = session($node, user => 'plain');
$plain->tell('BEGIN');
wait_for_queue($node, 2);
pass('others queue');
$holder->ask('COMMIT');
$late->settle;
$late->ask('COMMIT');
$plain->settle;
$_->ask('COMMIT') for ($super, $admin, $plain);
nothing_left($node, 'reserved slots');

# a warm session goes on with its slot, but a turn has a bounded number of transactions
set('reserved_slots', 0);
set('warm_time', '10s');
set('pass_over_max', '50s');
$node->safe_psql('postgres', 'CREATE TABLE turns (n serial, who text)');
$holder = session($node);
$holder->ask(("BEGIN;\nCOMMIT;\n" x 20) . 'BEGIN');
$waiter = session($node);
$waiter->tell("BEGIN;\nINSERT INTO turns (who) VALUES ('waiter');\nCOMMIT");
wait_for_queue($node, 1);
$holder->ask(join("\n", ("INSERT INTO turns (who) VALUES ('holder');", 'COMMIT;', 'BEGIN;') x 100)
	  . "\nCOMMIT");
$waiter->settle;
my $passed = $node->safe_psql('postgres',
	"SELECT count(*) FROM turns WHERE who = 'holder'
		AND n < (SELECT n FROM turns WHERE who = 'waiter')");
cmp_ok($passed, '>', 1, 'a warm session passes a waiter');
cmp_ok($passed, '<=', 33, 'with so many transactions at most');
nothing_left($node, 'turns');
$_->leave for ($holder, $waiter);

# who stays away between transactions, or was never seen to come back, lets go at once: the first
# time that somebody queues, and without the monitor, which takes idle slots back
my $monitor = $node->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_governor monitor'");
for my $habit ('new', 'away')
{
	$holder = session($node);
	if ($habit eq 'away')
	{
		$holder->ask("BEGIN;\nCOMMIT");
		usleep(50_000);
	}
	my $first = holder($node);
	$holder->tell("BEGIN;\nCOMMIT");
	wait_for_queue($node, 1);
	$waiter = session($node);
	$waiter->tell('BEGIN');
	wait_for_queue($node, 2);
	$node->safe_psql('postgres', 'SELECT pg_governor_reset()');
	kill 'STOP', $monitor;
	$first->ask('COMMIT');
	$waiter->settle;
	kill 'CONT', $monitor;
	is(gate_counts($node, 'admits_turn, admits_opened'), '2|0', "$habit: lets go at once");
	$waiter->ask('COMMIT');
	$_->leave for ($first, $holder, $waiter);
}
nothing_left($node, 'habits');

# the monitor is terminated: everybody is let in, and it comes back
$holder = holder($node);
$waiter = session($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
$node->safe_psql('postgres',
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_governor monitor'");
$waiter->settle;
pass('without a monitor nobody waits');
$node->poll_query_until('postgres',
	"SELECT capacity FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'", '1')
  or die;
$_->ask('COMMIT') for ($holder, $waiter);
nothing_left($node, 'monitor');

# a shutdown does not wait for those who queue
$holder = holder($node);
$waiter = session($node);
$waiter->tell('BEGIN');
wait_for_queue($node, 1);
$node->stop('fast');
pass('fast shutdown');

done_testing();

# Who is refused, who is told, and what single pools have of their own.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = governed_node('refusal', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.policy = codel
pg_governor.codel_target = 100ms
pg_governor.codel_interval = 500ms
EOC

# CoDel: a queue that is slow for the interval refuses its first, then more and more often
my $holder = holder($node);
my @clients = map { session($node) } 1 .. 6;
set_all($node, policy => 'fifo');
my $place = 0;
for my $client (@clients)
{
	$client->tell("\\set VERBOSITY verbose\nBEGIN");
	wait_for_queue($node, ++$place);
}
my $began = time;
set_all($node, policy => 'codel');
$node->poll_query_until('postgres', "SELECT refused >= 3 FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'") or die;
my $took = time - $began;
cmp_ok($took, '>', 0.9, sprintf('codel: three are refused after %.2f s', $took));
$clients[$_]->settle for 0 .. 2;
$clients[0]->ask('SELECT 1');
like($clients[0]->errors, qr/53G02.*too slow for too long/s, 'codel: the oldest one first, with the reason');
like(slurp_file($node->logfile), qr/refused a session of class "transaction" in pool "default", whose queue has taken longer/,
	'codel: it is logged');
$clients[$_]->ask('ROLLBACK') for 0 .. 2;
set_all($node, policy => 'fifo');
$holder->ask('COMMIT');
# in the order in which the server read their BEGINs, which need not be that of the test
$_->tell('COMMIT') for @clients[ 3 .. 5 ];
$_->settle for @clients[ 3 .. 5 ];
nothing_left($node, 'codel');

# by the queue's pace: 100 ms each; five in front are more than 200 ms
set_all($node, refuse_early => 'on');
my $script = $node->basedir . '/slow.sql';
append_to_file($script, "BEGIN;\nSELECT pg_sleep(0.1);\nCOMMIT;\n");
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 8, '-T', 600, '-f', $script, $node->connstr('postgres') ],
	'>', \my $out, '2>', \my $err);
$node->poll_query_until('postgres', "SELECT estimated_wait_ms BETWEEN 400 AND 20000 FROM pg_governor_pools
	WHERE pool = 'default' AND class = 'transaction'") or die;
my $hasty = session($node);
$hasty->ask("\\set VERBOSITY verbose\nSET pg_governor.user_queue_timeout = '200ms'");
# Now and then the queue is short, when the load's own clients wait for a CPU: then it queues.
my $said = '';
my $latest = time + $PostgreSQL::Test::Utils::timeout_default;
while (time < $latest && $said !~ /53G02/)
{
	$hasty->ask("BEGIN;\nSELECT 1;\nROLLBACK");
	$said = $hasty->errors;
}
like($said, qr/53G02.*It would take about \d+ ms, and the timeout is 200 ms/s, 'a hopeless wait is refused at once');
$hasty->ask("SET pg_governor.user_queue_timeout = '30min'");
$hasty->ask("BEGIN;\nSELECT 1;\nROLLBACK");
is($hasty->errors, '', 'one with hope is not');
$load->kill_kill;
$node->poll_query_until('postgres', 'SELECT sum(taken) FROM pg_governor_pools', '0') or die;
set_all($node, refuse_early => 'off');

# a notice to who waits long
$holder->ask('BEGIN');
my $told = session($node);
$told->ask("SET pg_governor.notice_queue_waits = '100ms'");
$told->tell('BEGIN');
for (1 .. 2000)
{
	last if $told->{err} =~ /NOTICE/;
	$told->{run}->pump_nb;
	usleep(50_000);
}
like($told->errors, qr/NOTICE:  waiting for a slot of class "transaction" in pool "default"/, 'a client is told while it waits');
$holder->ask('COMMIT');
$told->settle;
$told->ask('COMMIT');
is($told->errors, '', 'once');

# long waits are logged
set_all($node, log_queue_waits => '20ms');
$holder->ask('BEGIN');
$told->ask('SET pg_governor.notice_queue_waits = -1');
$told->tell('BEGIN');
$node->poll_query_until('postgres', 'SELECT waiting_ms > 30 FROM pg_governor_queue') or die;
$holder->ask('COMMIT');
$told->settle;
$told->ask('COMMIT');
like(slurp_file($node->logfile),
	qr/waited \d+\.\d+ ms for a slot of class "transaction" in pool "default"/,
	'a long wait is logged');

# a pool with a timeout of its own
set_all($node, queue_timeout => '0', pools => 'hasty(queue_timeout=50ms, on_timeout=error), slow()');
$_->ask("SET pg_governor.pool = 'hasty'") for ($holder, $told);
$holder->ask('BEGIN');
$told->ask("\\set VERBOSITY verbose\nBEGIN;\nSELECT 1;\nROLLBACK");
like($told->errors, qr/53G01.*pool "hasty"/s, 'a pool has its own timeout');
$holder->ask('COMMIT');

# pools that nobody lists any more are gone, and their place is free
is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT pool, ',' ORDER BY pool) FROM pg_governor_pools"),
	'default,hasty,slow', 'pools are those that are listed');
$holder->ask('BEGIN');
set_all($node, pools => 'slow()');
is($node->safe_psql('postgres', "SELECT taken FROM pg_governor_pools WHERE pool = 'hasty' AND class = 'transaction'"),
	'1', 'one that is not listed any more is there while somebody has a slot');
$told->ask('BEGIN; COMMIT');
is($node->safe_psql('postgres', "SELECT pool FROM pg_governor_sessions WHERE pid = $told->{pid}"), 'default',
	'others are in the default one');
like($told->errors, qr/WARNING:\s+.*there is no pool "hasty", so this session is in pool "default"/, 'and are told');
$holder->ask('COMMIT');
ok($node->poll_query_until('postgres', "SELECT string_agg(DISTINCT pool, ',' ORDER BY pool) FROM pg_governor_pools",
		'default,slow'), 'then it is gone');
like($node->safe_psql('postgres', 'SELECT problems FROM pg_governor_health'), qr/does not list \d+ times, the last one was \\"hasty\\"/,
	'health tells of pools that are not listed');
set_all($node, unknown_pool => 'error');
$told->ask("BEGIN;\nSELECT 1;\nROLLBACK");
like($told->errors, qr/ERROR:.*there is no pool "hasty"/, 'or such a session is refused');
$told->ask('RESET pg_governor.pool');
$told->ask("BEGIN;\nSELECT 1;\nCOMMIT");
is($told->errors, '', 'until it has one');

# more than there is room for
set_all($node, pools => join(', ', map { "p$_()" } 1 .. 20));
like(slurp_file($node->logfile), qr/WARNING:  pg_governor: 5 pools of pg_governor.pools have no room/, 'logged at a reload');
like($node->safe_psql('postgres', 'SELECT problems FROM pg_governor_health'), qr/5 pools of pg_governor.pools have no room/,
	'and in health');
set_all($node, pools => '');
nothing_left($node, 'pools');

$node->stop;
done_testing();

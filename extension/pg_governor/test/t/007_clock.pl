# Steps of the system's clock under waiters: no wait longer than its bound, and no
# early timeout.  The server runs with libfaketime, which leaves the monotonic
# clock alone.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my ($library) = glob('/usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1');
plan skip_all => 'libfaketime is not installed' if !$library;

my $clock = PostgreSQL::Test::Utils::tempdir() . '/clock';
sub step
{
	my ($offset) = @_;
	open my $file, '>', "$clock.new" or die;
	print $file "$offset\n";
	close $file;
	rename "$clock.new", $clock or die;
}
step('+0');

my $node;
{
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{FAKETIME_TIMESTAMP_FILE} = $clock;
	local $ENV{FAKETIME_NO_CACHE} = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
	local $ENV{DONT_FAKE_MONOTONIC} = 1;
	$node = governed_node('clock', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 30min
EOC
}
my $holder = holder($node);
my $patient = session($node);
my $impatient = session($node);
$impatient->ask("SET pg_governor.user_queue_timeout = '1s'");

for my $offset ('-3600', '+3600')
{
	my $before = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())');

	$patient->tell('BEGIN');
	wait_for_queue($node, 1);
	my $began = time;
	$impatient->tell('BEGIN');
	# to look whether it queues may take longer than it queues
	usleep(300_000);
	step($offset);
	$impatient->settle;
	my $took = time - $began;
	my $moved = $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())') - $before;
	cmp_ok(abs($moved), '>', 1000, sprintf('the server sees a step of %.0f s', $moved));
	$impatient->ask("SELECT 1;\nROLLBACK");
	like($impatient->errors, qr/ERROR:  canceling statement due to queue timeout/, "$offset: the timeout of one second comes");
	cmp_ok($took, '>=', 0.9, sprintf('%s: not before; after %.1f s', $offset, $took));
	is(gate_counts($node, 'taken, queued'), '1|1', "$offset: the timeout of half an hour does not");
	$holder->ask('COMMIT');
	$patient->settle;
	$patient->ask('COMMIT');
	$holder->ask('BEGIN');
	step('+0');
}

# the rules go on: a stall is noticed, with the clock an hour back
set_all($node, stall_time => '100ms');
step('-3600');
$patient->ask('BEGIN');
is(gate_counts($node, 'stalls'), '1', 'the stall rule goes on');
$_->ask('COMMIT') for ($patient, $holder);
nothing_left($node, 'clock');

$node->stop;
done_testing();

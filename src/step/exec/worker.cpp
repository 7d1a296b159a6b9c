#include "step/exec/worker.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

struct Worker::Flight {
  Flight(const Program& program, std::unique_ptr<MicroBatch> of) : on_device(std::move(of)), gradients(program) {}

  std::unique_ptr<MicroBatch> on_device;
  MicroBatchGradients gradients;
  std::vector<std::unique_ptr<Transfer>> receives, arrivals, sends;
  MicroBatchInputs inputs;
  StepContext context;
  std::optional<GradientTarget> target;
  std::optional<MicroBatchCall> call;
  int micro_batch = -1;  ///< -1: free as soon as its messages have left
  double seconds = 0;
};

namespace {

// Null: it has already been waited for.
bool is_done(const std::unique_ptr<Transfer>& transfer) {
  return transfer == nullptr || transfer->done();
}

bool all_done(const std::vector<std::unique_ptr<Transfer>>& transfers) {
  return std::all_of(transfers.begin(), transfers.end(), is_done);
}

// Messages are sent from where a value is: an input, or a flatten of one, is in the source's memory.
bool sends_inputs(const Program& program) {
  return std::any_of(program.sent.begin(), program.sent.end(),
                     [](const Location& location) { return location.space == Space::input; });
}

}  // namespace

const Worker::Awaited Worker::kActivations{kActivationWait, &PartWaits::activations};
const Worker::Awaited Worker::kGradients{kGradientWait, &PartWaits::gradients};
const Worker::Awaited Worker::kSends{kSendWait, &PartWaits::sends};

MicroBatchTimes& MicroBatchTimes::operator+=(const MicroBatchTimes& other) {
  compute_seconds += other.compute_seconds;
  data_seconds += other.data_seconds;
  merge_seconds += other.merge_seconds;
  part_waits.activations += other.part_waits.activations;
  part_waits.gradients += other.part_waits.gradients;
  part_waits.sends += other.part_waits.sends;
  part_bytes += other.part_bytes;
  return *this;
}

Worker::Worker(const Device& device, const ProgramSetup& setup, int worker, KernelSet kernels,
               const std::shared_ptr<const InputFiller>& filler)
    : graph_(setup.graph),
      program_(setup.program),
      part_(setup.part),
      links_(setup.links()),
      samples_(setup.micro_batch_samples()),
      steps_(steps_of(program_, links_.received.size(), links_.arrivals.size())),
      whole_({{.end = program_.instructions.size(), .awaited = {}, .sent = {}}}),
      runner_(program_, std::move(kernels)) {
  for (int i = 0; i < (part_ == nullptr ? 1 : micro_batches_in_memory(*part_)); ++i) {
    flights_.push_back(std::make_unique<Flight>(program_, device.make_micro_batch(setup, worker, runner_, filler)));
  }
}

Worker::~Worker() = default;

void Worker::run(const StepCalls& calls, std::span<const Task> tasks, const Done& done) {
  try {
    run_tasks(calls, tasks, done);
  } catch (...) {
    for (const auto& flight : flights_) {
      flight->on_device->abandon();
      if (part_ == nullptr) flight->micro_batch = -1;  // another may be computed: nobody waits for messages of this one
    }
    throw;
  }
}

void Worker::run_tasks(const StepCalls& calls, std::span<const Task> tasks, const Done& done) {
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const Task& task = tasks[t];
    post_next_receives(calls, tasks.subspan(t));
    Flight& flight = flight_of(task.micro_batch);
    if (task.pass != Pass::backward) begin(calls, flight);
    flight.on_device->begin_pass(*flight.call, task.wave);
    switch (task.pass) {
      case Pass::whole:
        run_phase(calls, flight,
                  {"micro_batch", 0, whole_, kActivations, flight.receives, FromParts::value, /*send=*/{}});
        break;
      case Pass::forward:
        forward(calls, flight);
        break;
      case Pass::backward:
        backward(calls, flight);
        break;
    }
    if (task.pass == Pass::forward && calls.buckets != nullptr) continue;  // its backward follows
    time(flight, [&] { flight.on_device->finish(); });
    valid_ = flight.inputs.valid;
    last_ = &flight;
    done(flight.micro_batch, flight.seconds);
    if (!graph_.inputs.empty()) {
      if (sends_inputs(program_)) wait_for_all(calls, kSends, flight.sends, flight.micro_batch);
      calls.source.release(calls.step, flight.micro_batch);
    }
    flight.micro_batch = -1;
  }
  for (const auto& flight : flights_) wait_for_all(calls, kSends, flight->sends, -1);
}

const float* Worker::result(const Location& location) const {
  return last_->on_device->result(location);
}

Worker::Flight& Worker::flight_of(int micro_batch) {
  const auto found = std::find_if(flights_.begin(), flights_.end(),
                                  [&](const auto& flight) { return flight->micro_batch == micro_batch; });
  LOCKSTEP_CHECK(found != flights_.end(),
                 "no more micro-batches are between forward and backward than parallel.in_flight");
  return **found;
}

/// Null if all are in use.
Worker::Flight* Worker::free_flight() {
  Flight* free = nullptr;
  for (const auto& flight : flights_) {
    if (flight->micro_batch >= 0) continue;
    free = flight.get();
    if (all_done(flight->sends)) break;
  }
  return free;
}

// `rest`: starts with the next task. Receives of that one are always posted; those of later tasks only if this needs no
// waiting.
void Worker::post_next_receives(const StepCalls& calls, std::span<const Task> rest) {
  bool next = true;
  for (const Task& task : rest) {
    const bool first = std::exchange(next, false);
    if (task.pass == Pass::backward) continue;
    const bool is_posted = std::any_of(flights_.begin(), flights_.end(),
                                       [&](const auto& flight) { return flight->micro_batch == task.micro_batch; });
    if (is_posted) continue;
    Flight* const flight = free_flight();
    if (!first && (flight == nullptr || !all_done(flight->sends))) return;
    LOCKSTEP_CHECK(flight != nullptr, "no more micro-batches are between forward and backward than parallel.in_flight");
    wait_for_all(calls, kSends, flight->sends, -1);
    start(calls, *flight, task.micro_batch);
  }
}

void Worker::start(const StepCalls& calls, Flight& flight, int micro_batch) {
  flight.micro_batch = micro_batch;
  flight.seconds = 0;
  flight.context = calls.context;
  flight.context.first_position = micro_batch * samples_;
  receive(calls, FromParts::value, flight);
}

void Worker::receive(const StepCalls& calls, FromParts what, Flight& flight) {
  const bool values = what == FromParts::value;
  const auto& links = values ? links_.received : links_.arrivals;
  const std::size_t micro_batch = flight.micro_batch;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::size_t part = links[i].part;
    const int from = (*calls.rank_of_micro_batch)[part][micro_batch];
    const int tag = links_.tag(links[i], calls.numbers->from[part][micro_batch]);
    (values ? flight.receives : flight.arrivals)
        .push_back(part_->ranks.receive({flight.on_device->message(what, i), links[i].bytes}, from, tag));
  }
}

void Worker::send(const StepCalls& calls, const PartLinks::Link& link, const void* from, Flight& flight) {
  const std::size_t part = link.part, micro_batch = flight.micro_batch;
  const int to = (*calls.rank_of_micro_batch)[part][micro_batch];
  const int tag = links_.tag(link, calls.numbers->to[part][micro_batch]);
  flight.sends.push_back(part_->ranks.send({static_cast<const std::byte*>(from), link.bytes}, to, tag));
  times_.part_bytes += link.bytes;
}

// `entries`: of `transfers`; each is waited for once.
void Worker::wait(const StepCalls& calls, const Awaited& what, std::vector<std::unique_ptr<Transfer>>& transfers,
                  std::span<const std::size_t> entries, int micro_batch) {
  if (entries.empty()) return;
  const TraceScope span(calls.trace, what.name, calls.step, calls.track, micro_batch);
  const auto start = Clock::now();
  for (const std::size_t entry : entries) {
    transfers[entry]->wait({what.name, calls.step, part_->timeout, calls.stop, part_->pulse});
    transfers[entry].reset();
  }
  if (part_->pulse != nullptr) part_->pulse->moved();
  times_.part_waits.*what.seconds += seconds_since(start);
}

void Worker::wait_for_all(const StepCalls& calls, const Awaited& what,
                          std::vector<std::unique_ptr<Transfer>>& transfers, int micro_batch) {
  std::vector<std::size_t> all(transfers.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  wait(calls, what, transfers, all, micro_batch);
  transfers.clear();
}

const void* Worker::made(Flight& flight, const Location& location, std::size_t bytes) {
  const void* memory = nullptr;
  time(flight, [&] { memory = flight.on_device->made(location, bytes, *flight.call); });
  return memory;
}

template <class Compute>
void Worker::time(Flight& flight, const Compute& compute) {
  const auto start = Clock::now();
  const double handed_over = flight.gradients.seconds();
  compute();
  const double seconds = seconds_since(start), handing_over = flight.gradients.seconds() - handed_over;
  flight.seconds += seconds;
  times_.compute_seconds += seconds - handing_over;
  times_.merge_seconds += handing_over;
}

// `skip`: gathers parameters, which all ranks do together, but computes nothing.
void Worker::run_instructions(Flight& flight, std::size_t first, std::size_t last, bool skip) {
  MicroBatch& on_device = *flight.on_device;
  MicroBatchGradients& gradients = flight.gradients;
  comm::Pulse* const pulse = part_ == nullptr ? nullptr : part_->pulse;
  const double waited_before = on_device.waited();
  time(flight, [&] {
    on_device.bind();
    MicroBatchOperands operands = on_device.operands(*flight.call);
    operands.slots = gradients.slots();
    for (std::size_t begin = first, end = 0; begin < last; begin = end) {
      end = std::min(on_device.end_of_segment(begin, gradients), last);
      on_device.before(begin);
      for (std::size_t i = begin; i < end; ++i) {
        gradients.before(i, [&](const comm::GradientBuffer& buffer) { on_device.opened(buffer); });
      }
      if (!skip) on_device.run(begin, end, operands, gradients.open_buckets());
      if (pulse != nullptr) pulse->moved();
      on_device.after(end - 1);
      for (std::size_t i = begin; i < end; ++i) {
        gradients.after(i, [&](const comm::GradientBuffer& buffer) { on_device.closing(buffer); });
      }
    }
  });
  const double waited = on_device.waited() - waited_before;
  times_.compute_seconds -= waited;
  times_.merge_seconds += waited;
}

// Spans before and after a wait are separate: waiting is not computing.
void Worker::run_phase(const StepCalls& calls, Flight& flight, const Phase& phase) {
  std::optional<TraceScope> span;
  std::size_t begin = phase.first;
  for (const PartStep& step : phase.steps) {
    const auto is_there = [&](std::size_t entry) { return is_done(phase.transfers[entry]); };
    if (!std::all_of(step.awaited.begin(), step.awaited.end(), is_there)) span.reset();
    wait(calls, phase.awaited, phase.transfers, step.awaited, flight.micro_batch);
    for (const std::size_t entry : step.awaited) flight.on_device->received(phase.what, entry);
    if (!span && begin < step.end) {
      span.emplace(calls.trace, phase.name, calls.step, calls.track, flight.micro_batch);
      runner_.time_kernels(flight.on_device->times_kernels() ? span->kernel_seconds() : nullptr);
    }
    run_instructions(flight, begin, step.end, calls.skips_compute != nullptr && *calls.skips_compute);
    begin = step.end;
    for (const PartStep::Sent& what : step.sent) phase.send(what);
  }
  phase.transfers.clear();
}

void Worker::begin(const StepCalls& calls, Flight& flight) {
  if (graph_.inputs.empty()) {
    flight.inputs.valid = samples_;
  } else {
    const TraceScope span(calls.trace, "data wait", calls.step, calls.track, flight.micro_batch);
    const auto start = Clock::now();
    calls.source.get(calls.step, flight.micro_batch, flight.inputs);
    times_.data_seconds += seconds_since(start);
  }
  flight.target.reset();
  if (calls.buckets != nullptr) {
    flight.target.emplace(GradientTarget{*calls.sink, *calls.buckets, flight.micro_batch, calls.loss_scale});
  }
  flight.call.emplace(MicroBatchCall{.inputs = flight.inputs,
                                     .model = calls.model,
                                     .context = flight.context,
                                     .gradients = flight.target ? &*flight.target : nullptr,
                                     .trace = calls.trace,
                                     .track = calls.track});
  flight.gradients.begin(*flight.call);
  time(flight, [&] { flight.on_device->begin(*flight.call); });
}

void Worker::forward(const StepCalls& calls, Flight& flight) {
  const auto send_value = [&](const PartStep::Sent& what) {
    const auto& links = links_.sent[what.entry];
    if (links.empty()) return;
    const void* const value = made(flight, program_.sent[what.entry], links.front().bytes);
    for (const auto& link : links) send(calls, link, value, flight);
  };
  run_phase(calls, flight, {"forward", 0, steps_.forward, kActivations, flight.receives, FromParts::value, send_value});
  if (calls.buckets != nullptr) receive(calls, FromParts::gradient, flight);
}

void Worker::backward(const StepCalls& calls, Flight& flight) {
  wait_for_all(calls, kSends, flight.sends, flight.micro_batch);  // backward may overwrite what forward has made
  const auto send_gradient = [&](const PartStep::Sent& what) {
    const auto& link = links_.gradients[what.entry][what.term];
    send(calls, link, made(flight, program_.received_gradients[what.entry].at(what.term), link.bytes), flight);
  };
  const std::size_t first = program_.forward_end;
  run_phase(calls, flight,
            {"backward", first, steps_.backward, kGradients, flight.arrivals, FromParts::gradient, send_gradient});
}

double Worker::try_micro_batch(const MicroBatchCall& call) {
  Flight& flight = *flights_.front();
  LOCKSTEP_CHECK(flight.micro_batch < 0, "micro-batches are tried between steps");
  flight.inputs = call.inputs;
  flight.context = call.context;
  flight.call.emplace(call);
  flight.gradients.begin(*flight.call);
  flight.seconds = 0;
  time(flight, [&] { flight.on_device->begin(*flight.call); });
  flight.on_device->begin_pass(*flight.call, 0);
  const auto receive_zeros = [&](FromParts what, const std::vector<PartLinks::Link>& links) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::fill_n(flight.on_device->message(what, i), links[i].bytes, std::byte{0});
      flight.on_device->received(what, i);
    }
  };
  receive_zeros(FromParts::value, links_.received);
  receive_zeros(FromParts::gradient, links_.arrivals);
  runner_.time_kernels(nullptr);
  run_instructions(flight, 0, program_.instructions.size());
  time(flight, [&] { flight.on_device->finish(); });
  times_ = {};
  return flight.seconds;
}

}  // namespace lockstep::exec

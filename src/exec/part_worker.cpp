#include "exec/part_worker.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

struct PartWorker::Flight {
  Flight(const Program& program, std::unique_ptr<PartMicroBatch> of) : memory(std::move(of)), gradients(program) {}

  std::unique_ptr<PartMicroBatch> memory;
  MicroBatchGradients gradients;
  std::vector<std::unique_ptr<Transfer>> receives, arrivals;
  std::vector<std::unique_ptr<Transfer>> sends;
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

const PartWorker::Awaited PartWorker::kActivations{kActivationWait, &PartWaits::activations};
const PartWorker::Awaited PartWorker::kGradients{kGradientWait, &PartWaits::gradients};
const PartWorker::Awaited PartWorker::kSends{kSendWait, &PartWaits::sends};

int default_in_flight(const std::vector<std::vector<int>>& ranks_of_part) {
  std::size_t after = 0, most = 1;
  for (std::size_t p = ranks_of_part.size(); p-- > 0;) {
    const std::size_t own = ranks_of_part[p].size();
    most = std::max(most, 1 + divide_up(after, own));
    after += own;
  }
  return static_cast<int>(std::max(most, ranks_of_part.size())) + 1;
}

PartWorker::PartWorker(const Device& device, const ProgramSetup& setup, int worker, KernelSet kernels)
    : graph_(setup.graph),
      program_(setup.program),
      part_(*setup.part),
      steps_(steps_of(program_, part_.links.received.size(), part_.links.arrivals.size())),
      runner_(program_, std::move(kernels)),
      parameters_(program_, true) {
  for (int i = 0; i < micro_batches_in_memory(part_); ++i) {
    flights_.push_back(std::make_unique<Flight>(program_, device.make_part_micro_batch(setup, worker, runner_)));
  }
}

PartWorker::~PartWorker() = default;

void PartWorker::run(const PartCalls& calls, std::span<const PartTask> tasks,
                     const std::function<void(int micro_batch, double seconds)>& done) {
  try {
    run_tasks(calls, tasks, done);
  } catch (...) {
    for (const auto& flight : flights_) flight->memory->abandon();
    throw;
  }
}

void PartWorker::run_tasks(const PartCalls& calls, std::span<const PartTask> tasks,
                           const std::function<void(int micro_batch, double seconds)>& done) {
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    post_next_receives(calls, tasks.subspan(t));
    Flight& flight = flight_of(tasks[t].micro_batch);
    const bool last = !tasks[t].forward || calls.buckets == nullptr;
    tasks[t].forward ? forward(calls, flight, tasks[t].wave) : backward(calls, flight, tasks[t].wave);
    if (!last) continue;
    time(flight, [&] { flight.memory->finish(); });
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

const float* PartWorker::result(const Location& location) const {
  return last_->memory->result(location);
}

PartWorker::Flight& PartWorker::flight_of(int micro_batch) {
  const auto found = std::find_if(flights_.begin(), flights_.end(),
                                  [&](const auto& flight) { return flight->micro_batch == micro_batch; });
  LOCKSTEP_CHECK(found != flights_.end(),
                 "no more micro-batches are between forward and backward than parallel.in_flight");
  return **found;
}

/// Null if all are in use.
PartWorker::Flight* PartWorker::free_flight() {
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
void PartWorker::post_next_receives(const PartCalls& calls, std::span<const PartTask> rest) {
  bool next = true;
  for (const PartTask& task : rest) {
    const bool first = std::exchange(next, false);
    if (!task.forward) continue;
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

void PartWorker::start(const PartCalls& calls, Flight& flight, int micro_batch) {
  flight.micro_batch = micro_batch;
  flight.seconds = 0;
  flight.context = calls.context(micro_batch);
  receive(calls, FromParts::value, flight);
}

void PartWorker::receive(const PartCalls& calls, FromParts what, Flight& flight) {
  const bool values = what == FromParts::value;
  const auto& links = values ? part_.links.received : part_.links.arrivals;
  const auto micro_batch = static_cast<std::size_t>(flight.micro_batch);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto part = static_cast<std::size_t>(links[i].part);
    const int from = calls.rank_of_micro_batch[part][micro_batch];
    const int tag = part_.links.tag(links[i], calls.numbers.from[part][micro_batch]);
    (values ? flight.receives : flight.arrivals)
        .push_back(part_.ranks.receive({flight.memory->message(what, i), links[i].bytes}, from, tag));
  }
}

void PartWorker::send(const PartCalls& calls, const PartLinks::Link& link, const void* from, Flight& flight) {
  const auto part = static_cast<std::size_t>(link.part), micro_batch = static_cast<std::size_t>(flight.micro_batch);
  const int to = calls.rank_of_micro_batch[part][micro_batch];
  const int tag = part_.links.tag(link, calls.numbers.to[part][micro_batch]);
  flight.sends.push_back(part_.ranks.send({static_cast<const std::byte*>(from), link.bytes}, to, tag));
  work_.bytes_sent += link.bytes;
}

// `entries`: of `transfers`; each is waited for once.
void PartWorker::wait(const PartCalls& calls, const Awaited& what, std::vector<std::unique_ptr<Transfer>>& transfers,
                      std::span<const std::size_t> entries, int micro_batch) {
  if (entries.empty()) return;
  const TraceScope span(calls.trace, what.name, calls.step, calls.track, micro_batch);
  const auto start = Clock::now();
  for (const std::size_t entry : entries) {
    transfers[entry]->wait({what.name, calls.step, part_.timeout, calls.stop, part_.pulse});
    transfers[entry].reset();
  }
  if (part_.pulse != nullptr) part_.pulse->moved();
  work_.waits.*what.seconds += seconds_since(start);
}

void PartWorker::wait_for_all(const PartCalls& calls, const Awaited& what,
                              std::vector<std::unique_ptr<Transfer>>& transfers, int micro_batch) {
  std::vector<std::size_t> all(transfers.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  wait(calls, what, transfers, all, micro_batch);
  transfers.clear();
}

const void* PartWorker::made(Flight& flight, const Location& location, std::size_t bytes) {
  const void* memory = nullptr;
  time(flight, [&] { memory = flight.memory->made(location, bytes, *flight.call); });
  return memory;
}

template <class Compute>
void PartWorker::time(Flight& flight, const Compute& compute) {
  const auto start = Clock::now();
  const double handed_over = flight.gradients.seconds();
  compute();
  const double seconds = seconds_since(start), handing_over = flight.gradients.seconds() - handed_over;
  flight.seconds += seconds;
  work_.compute += seconds - handing_over;
  work_.hand_over += handing_over;
}

// `skip`: gathers parameters, which all ranks do together, but computes nothing.
void PartWorker::run_instructions(Flight& flight, std::size_t first, std::size_t last, bool skip) {
  PartMicroBatch& memory = *flight.memory;
  const double gathering = memory.gather_seconds();
  time(flight, [&] {
    memory.bind();
    MicroBatchOperands operands = memory.operands(*flight.call);
    operands.slots = flight.gradients.slots();
    parameters_.begin({flight.call->model.fetched, flight.context.step, flight.call->trace, flight.call->track});
    for (std::size_t i = first; i < last; ++i) {
      parameters_.before(i);
      memory.before(i);
      flight.gradients.before(i, [&](const comm::GradientBuffer& buffer) { memory.opened(buffer); });
      if (!skip) runner_.run(i, operands);
      if (part_.pulse != nullptr) part_.pulse->moved();
      parameters_.after(i);
      memory.after(i);
      flight.gradients.after(i, [&](const comm::GradientBuffer& buffer) { memory.closing(buffer); });
    }
  });
  const double waited = parameters_.seconds() + memory.gather_seconds() - gathering;
  work_.compute -= waited;
  work_.hand_over += waited;
}

// Spans before and after a wait are separate: waiting is not computing.
void PartWorker::run_phase(const PartCalls& calls, Flight& flight, const Phase& phase) {
  std::optional<TraceScope> span;
  std::size_t begin = phase.first;
  for (const PartStep& step : phase.steps) {
    const auto is_there = [&](std::size_t entry) { return is_done(phase.transfers[entry]); };
    if (!std::all_of(step.awaited.begin(), step.awaited.end(), is_there)) span.reset();
    wait(calls, phase.awaited, phase.transfers, step.awaited, flight.micro_batch);
    for (const std::size_t entry : step.awaited) flight.memory->received(phase.what, entry);
    if (!span && begin < step.end) {
      span.emplace(calls.trace, phase.name, calls.step, calls.track, flight.micro_batch);
      runner_.time_kernels(flight.memory->times_kernels() ? span->kernel_seconds() : nullptr);
    }
    run_instructions(flight, begin, step.end, calls.skips_compute != nullptr && *calls.skips_compute);
    begin = step.end;
    for (const PartStep::Sent& what : step.sent) phase.send(what);
  }
  phase.transfers.clear();
}

void PartWorker::forward(const PartCalls& calls, Flight& flight, int wave) {
  if (graph_.inputs.empty()) {
    flight.inputs.valid = part_.samples;
  } else {
    const TraceScope span(calls.trace, "data wait", calls.step, calls.track, flight.micro_batch);
    const auto start = Clock::now();
    calls.source.get(calls.step, flight.micro_batch, flight.inputs);
    work_.inputs += seconds_since(start);
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
  flight.memory->begin(*flight.call);
  flight.memory->begin_wave(*flight.call, wave);
  const auto send_value = [&](const PartStep::Sent& what) {
    const auto& links = part_.links.sent[what.entry];
    if (links.empty()) return;
    const void* const value = made(flight, program_.sent[what.entry], links.front().bytes);
    for (const auto& link : links) send(calls, link, value, flight);
  };
  run_phase(calls, flight, {"forward", 0, steps_.forward, kActivations, flight.receives, FromParts::value, send_value});
  if (calls.buckets != nullptr) receive(calls, FromParts::gradient, flight);
}

void PartWorker::backward(const PartCalls& calls, Flight& flight, int wave) {
  flight.memory->begin_wave(*flight.call, wave);
  wait_for_all(calls, kSends, flight.sends, flight.micro_batch);  // backward may overwrite what forward has made
  const auto send_gradient = [&](const PartStep::Sent& what) {
    const auto& link = part_.links.gradients[what.entry][what.term];
    send(calls, link, made(flight, program_.received_gradients[what.entry].at(what.term), link.bytes), flight);
  };
  const auto first = static_cast<std::size_t>(program_.forward_end);
  run_phase(calls, flight,
            {"backward", first, steps_.backward, kGradients, flight.arrivals, FromParts::gradient, send_gradient});
}

double PartWorker::try_micro_batch(const MicroBatchCall& call) {
  Flight& flight = *flights_.front();
  LOCKSTEP_CHECK(flight.micro_batch < 0, "micro-batches are tried between steps");
  flight.inputs = call.inputs;
  flight.context = call.context;
  flight.call.emplace(call);
  flight.gradients.begin(*flight.call);
  flight.memory->begin(*flight.call);
  flight.memory->begin_wave(*flight.call, 0);
  const auto receive_zeros = [&](FromParts what, const std::vector<PartLinks::Link>& links) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::fill_n(flight.memory->message(what, i), links[i].bytes, std::byte{0});
      flight.memory->received(what, i);
    }
  };
  receive_zeros(FromParts::value, part_.links.received);
  receive_zeros(FromParts::gradient, part_.links.arrivals);
  flight.seconds = 0;
  runner_.time_kernels(nullptr);
  run_instructions(flight, 0, program_.instructions.size());
  time(flight, [&] { flight.memory->finish(); });
  work_ = {};
  return flight.seconds;
}

}  // namespace lockstep::exec

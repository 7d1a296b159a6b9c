#include "run/train/run.hpp"

#include <fmt/format.h>

#include "config/config.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/device_choice.hpp"
#include "run/train/job_graph.hpp"
#include "run/train/known_speeds.hpp"
#include "run/train/same_run.hpp"
#include "step/optim/loss_scaling.hpp"

namespace lockstep::train {

namespace {

std::int64_t steps_of(const JobFile& job, std::int64_t steps_per_epoch) {
  const std::int64_t steps = total_steps({job.steps, job.epochs}, steps_per_epoch);
  if (steps > 0) return steps;
  throw config::Problems({{job.place_of("job.epochs"),
                           fmt::format("expected epochs that are at least one step, found {} epochs of {} steps, which "
                                       "round to 0 steps; set epochs to {:.2g} or more, or steps=1",
                                       job.epochs, steps_per_epoch, 1.0 / steps_per_epoch)}});
}

}  // namespace

Run::Run(const JobFile& of_job, Communicator& ranks, const Registries& registries, const TrainerOptions& how,
         const DataSets& own)
    : job(of_job),
      canonical(config::canonical(job, catalogue_of(registries))),
      communicator(ranks),
      options(how),
      sinks(options.sink == nullptr ? 0 : 1, options.sink),
      backend(choose_backend(job, communicator)),
      context{{job, canonical, communicator, backend->device(), sinks}, registries, options},
      start(Clock::now()),
      data(input::learn(job.data, job.seed, job.batch_size, registries, own, {.communicator = &communicator})),
      graph(make_job_graph(job, data, registries)),
      parts(graph, job, backend->device(), communicator, options.lowered, speeds_of_ranks(context, graph)),
      targets_in_mean(optim::targets_in_mean(graph, job.micro_batches)),
      steps_per_epoch(data.train->size() / job.batch_size),
      steps(steps_of(job, steps_per_epoch)),
      learning_rate(job.learning_rate, registries.schedules, job.batch_size, steps, steps_per_epoch) {}

}  // namespace lockstep::train

// What a run does besides training: evaluate, early_stop, initialize, checkpoint, telemetry, balance.
#include <arpa/inet.h>
#include <fmt/format.h>

#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"
#include "core/remote_path.hpp"

namespace lockstep::config {
namespace {

bool is_ip_address(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace

Is<EvaluateOptions> evaluate_section() {
  using Options = EvaluateOptions;
  return Section<Options>()
      .word(
          "never", [](Options& o) { o.never = true; }, [](const Options& o) { return o.never; })
      .field("every", &Options::every, span(false), "how often; also at the end");
}

Is<EarlyStopOptions> early_stop_section(const Catalogue& catalogue) {
  using Options = EarlyStopOptions;
  return Section<Options>()
      .initially([](Options& o) { o.patience = 5; })
      .field("metric", &Options::metric, metric_or_loss(catalogue), "what must improve")
      .required()
      .field("patience", &Options::patience, number().at_least(1), "evaluations without improvement before the end")
      .field("min_delta", &Options::min_delta, number().at_least(0), "minimum improvement")
      .field("restore_best", &Options::restore_best, boolean(),
             "eval, predict, export, initialize and sweeps take the best checkpoint; needs checkpoint.best");
}

Is<InitializeOptions> initialize_section() {
  using Options = InitializeOptions;
  return Section<Options>()
      .field("from", &Options::from, existing_file(),
             "a safetensors file, the index (.json) of several, a folder of Hugging Face's, a checkpoint or a run's "
             "directory")
      .required()
      .field("only", &Options::only, list_of<std::string>(text(), {.least = 0, .single = true}),
             "glob patterns of parameters; empty: all")
      .field("names", &Options::names, choice<WeightNames>(),
             "the file's names and order of elements. torch: columns of a linear layer behind a flatten are channel, "
             "height, width; names of norms and recurrent layers are known. torchvision: ResNet, MobileNetV2; "
             "huggingface: GPT-2, Llama, BERT, ViT. auto: by the file's names and metadata (format: lockstep or pt), "
             "refused where the order matters and is unknown")
      .field("map", &Options::map, map_of<std::string>(text(), "names"),
             "other names in the file: {head.*: fc.*}; a * at both ends is the rest")
      .shorthand("from");
}

Is<CheckpointOptions> checkpoint_section(const Catalogue& catalogue) {
  using Options = CheckpointOptions;
  return Section<Options>()
      .word(
          "never", [](Options& o) { o.never = true; }, [](const Options& o) { return o.never; })
      .field("every", &Options::every, span(false), "how often; also at the end")
      .field("keep", &Options::keep, number().at_least(1), "newest checkpoints kept")
      .field("keep_every", &Options::keep_every, optional_of(span(false)), "keep those of such steps too")
      .field("best", &Options::best, metric_or_loss(catalogue), "keep the best by this metric too")
      .field("part_bytes", &Options::part_bytes, bytes(), "approximate size of a file; more files let more ranks write")
      .field("copy_to", &Options::copy_to, text(),
             "s3://BUCKET/KEY: copies of checkpoints, below the run directory's path; a run whose directory has none "
             "continues from the newest copy")
      .check({"copy_to"}, [](const Options& o, const Scope& scope) {
        if (o.copy_to.empty() || is_remote(o.copy_to)) return;
        scope.problem("copy_to", fmt::format("expected s3://BUCKET/KEY, found '{}'", o.copy_to));
      });
}

Is<TelemetryOptions> prometheus_section() {
  using Options = TelemetryOptions;
  return Section<Options>()
      .word(
          "never", [](Options& o) { o.prometheus_port = 0; }, [](const Options& o) { return o.prometheus_port == 0; })
      .initially([](Options& o) { o.prometheus_port = 9840; })
      .field("address", &Options::prometheus_address, text(),
             "that ranks listen on; 0.0.0.0: all of IPv4, `::` all. Who can reach it can read the metrics")
      .field("port", &Options::prometheus_port, number().at_least(1).at_most(65535),
             "of local rank 0; others follow. One in use is replaced, see metrics/targets.json")
      .field("linger", &Options::linger_seconds, number().at_least(0).word("auto", -1),
             "seconds a rank waits at its end for a last scrape; `auto`: at most 30, and only if scraped before")
      .field("targets", &Options::targets_folder, text(), "a folder for RUN.json, a copy of metrics/targets.json")
      .check({"address"}, [](const Options& o, const Scope& scope) {
        if (is_ip_address(o.prometheus_address)) return;
        scope.problem("address", fmt::format("expected an IP address, found '{}'", o.prometheus_address));
      });
}

Is<TensorboardOptions> tensorboard_section() {
  using Options = TensorboardOptions;
  return Section<Options>()
      .initially([](Options& o) { o.enabled = true; })
      .field("enabled", &Options::enabled, boolean(), "whether they are written")
      .field("histograms", &Options::histograms, span(true),
             "weights, gradients and first filters; 0 steps: never. After 512 every second time, after 1,024 every "
             "fourth, ...")
      .field("images", &Options::images, boolean(), "inputs of the steps, and the filters of the first convolution")
      .shorthand("enabled");
}

Is<TelemetryOptions> telemetry_section() {
  using Options = TelemetryOptions;
  return Section<Options>()
      .part("prometheus", prometheus_section(), "metrics over HTTP; metrics/targets.json has the addresses")
      .field("tensorboard", &Options::tensorboard, tensorboard_section(),
             "event files in `tensorboard` of the run directory; off, unless true or a map")
      .field("every", &Options::every, optional_of(span(false)),
             "steps in events.jsonl and TensorBoard's curves; default: the first 32,768, then every second up to twice "
             "as many, every fourth up to four times as many, ...");
}

Is<BalanceOptions> balance_section() {
  using Options = BalanceOptions;
  return Section<Options>()
      .word(BalanceMode::automatic, &Options::mode)
      .word(BalanceMode::equal, &Options::mode)
      .field("weights", &Options::weights, map_of<double>(number().above(0), "names and numbers"),
             "micro-batches in proportion, by host or (part of) a processor model's name; 1 where not named")
      .alternative(BalanceMode::weights, &Options::mode)
      .field("prometheus", &Options::prometheus, text(),
             "URL of a Prometheus server: as auto, but the first assignment is by earlier runs, by host and processor "
             "model")
      .alternative(BalanceMode::prometheus, &Options::mode)
      .check({"prometheus"}, [](const Options& o, const Scope& scope) {
        const std::string& url = o.prometheus;
        if (url.empty() || url.starts_with("http://") || url.starts_with("https://")) return;
        scope.problem("prometheus",
                      fmt::format("expected a URL that begins with http:// or https://, found '{}'", url));
      });
}

}  // namespace lockstep::config

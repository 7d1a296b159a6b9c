#include "core/other_words.hpp"

#include <array>
#include <cctype>

namespace lockstep {

namespace {

struct OtherWord {
  std::string_view theirs;  ///< plain()
  std::string_view ours;
};

constexpr std::array kOtherWords{
    // layers
    OtherWord{"dense", "linear"},
    OtherWord{"fc", "linear"},
    OtherWord{"fullyconnected", "linear"},
    OtherWord{"innerproduct", "linear"},
    OtherWord{"conv1d", "conv"},
    OtherWord{"conv2d", "conv"},
    OtherWord{"convolution", "conv"},
    OtherWord{"convolution1d", "conv"},
    OtherWord{"convolution2d", "conv"},
    OtherWord{"maxpool1d", "max_pool"},
    OtherWord{"maxpool2d", "max_pool"},
    OtherWord{"maxpooling", "max_pool"},
    OtherWord{"maxpooling1d", "max_pool"},
    OtherWord{"maxpooling2d", "max_pool"},
    OtherWord{"avgpool1d", "avg_pool"},
    OtherWord{"avgpool2d", "avg_pool"},
    OtherWord{"averagepooling", "avg_pool"},
    OtherWord{"averagepooling1d", "avg_pool"},
    OtherWord{"averagepooling2d", "avg_pool"},
    OtherWord{"adaptiveavgpool2d", "global_pool"},
    OtherWord{"adaptivemaxpool2d", "global_pool"},
    OtherWord{"globalaveragepooling2d", "global_pool"},
    OtherWord{"globalmaxpooling2d", "global_pool"},
    OtherWord{"batchnorm1d", "batch_norm"},
    OtherWord{"batchnorm2d", "batch_norm"},
    OtherWord{"batchnormalization", "batch_norm"},
    OtherWord{"layernormalization", "layer_norm"},
    OtherWord{"groupnormalization", "group_norm"},
    OtherWord{"instancenorm1d", "instance_norm"},
    OtherWord{"instancenorm2d", "instance_norm"},
    OtherWord{"multiheadattention", "attention"},
    OtherWord{"groupqueryattention", "attention"},
    OtherWord{"groupedqueryattention", "attention"},
    OtherWord{"rotaryembedding", "rope"},
    OtherWord{"rotarypositionalembeddings", "rope"},
    OtherWord{"conv1dtranspose", "conv_transpose"},
    OtherWord{"conv2dtranspose", "conv_transpose"},
    OtherWord{"convtranspose1d", "conv_transpose"},
    OtherWord{"convtranspose2d", "conv_transpose"},
    OtherWord{"deconv", "conv_transpose"},
    OtherWord{"deconvolution", "conv_transpose"},
    OtherWord{"zeropadding1d", "pad"},
    OtherWord{"zeropadding2d", "pad"},
    OtherWord{"zeropad1d", "pad"},
    OtherWord{"zeropad2d", "pad"},
    OtherWord{"reflectionpad1d", "pad"},
    OtherWord{"reflectionpad2d", "pad"},
    OtherWord{"reducemean", "mean"},
    OtherWord{"reducemax", "max"},
    OtherWord{"amax", "max"},
    OtherWord{"split", "slice"},
    OtherWord{"masking", "mask"},
    OtherWord{"flip", "reverse"},
    OtherWord{"globalaveragepooling1d", "mean"},
    OtherWord{"adaptiveavgpool1d", "mean"},
    OtherWord{"globalmaxpooling1d", "max"},
    OtherWord{"adaptivemaxpool1d", "max"},
    OtherWord{"swish", "silu"},
    OtherWord{"concatenate", "concat"},
    OtherWord{"cat", "concat"},
    OtherWord{"permute", "transpose"},
    OtherWord{"upsampling1d", "upsample"},
    OtherWord{"upsampling2d", "upsample"},
    OtherWord{"interpolate", "upsample"},
    OtherWord{"subtract", "sub"},
    OtherWord{"multiply", "mul"},
    OtherWord{"bmm", "matmul"},
    OtherWord{"dot", "matmul"},
    OtherWord{"batchdot", "matmul"},
    OtherWord{"lstmcell", "lstm"},
    OtherWord{"grucell", "gru"},
    // models
    OtherWord{"mobilenetv2", "mobilenet"},
    OtherWord{"visiontransformer", "vit"},
    OtherWord{"gpt2", "gpt"},
    OtherWord{"llama2", "llama"},
    OtherWord{"llama3", "llama"},
    // losses and metrics
    OtherWord{"bce", "binary_cross_entropy"},
    OtherWord{"bcewithlogitsloss", "binary_cross_entropy"},
    OtherWord{"binarycrossentropy", "binary_cross_entropy"},
    OtherWord{"categoricalcrossentropy", "cross_entropy"},
    OtherWord{"sparsecategoricalcrossentropy", "cross_entropy"},
    OtherWord{"crossentropyloss", "cross_entropy"},
    OtherWord{"nllloss", "cross_entropy"},
    OtherWord{"focal", "cross_entropy"},
    OtherWord{"focalloss", "cross_entropy"},
    OtherWord{"categoricalfocalcrossentropy", "cross_entropy"},
    OtherWord{"binaryfocalcrossentropy", "binary_cross_entropy"},
    OtherWord{"sigmoidfocalloss", "binary_cross_entropy"},
    OtherWord{"kl", "kl_divergence"},
    OtherWord{"kldivloss", "kl_divergence"},
    OtherWord{"mse", "mean_squared_error"},
    OtherWord{"mseloss", "mean_squared_error"},
    OtherWord{"mae", "mean_absolute_error"},
    OtherWord{"l1loss", "mean_absolute_error"},
    OtherWord{"huberloss", "huber"},
    OtherWord{"smoothl1loss", "huber"},
    OtherWord{"meanabsoluteerror", "mae"},
    OtherWord{"rootmeansquarederror", "rmse"},
    OtherWord{"meansquarederror", "rmse"},
    OtherWord{"f1score", "f1"},
    OtherWord{"topk", "top5"},
    OtherWord{"topkaccuracy", "top5"},
    OtherWord{"topkcategoricalaccuracy", "top5"},
    OtherWord{"sparsetopkcategoricalaccuracy", "top5"},
    OtherWord{"r2score", "r2"},
    OtherWord{"binaryiou", "iou"},
    OtherWord{"jaccard", "iou"},
    OtherWord{"miou", "mean_iou"},
    // the learning rate
    OtherWord{"steplr", "steps"},
    OtherWord{"multisteplr", "steps"},
    OtherWord{"linearlr", "linear"},
    OtherWord{"cosineannealinglr", "cosine"},
    OtherWord{"cosinedecay", "cosine"},
    OtherWord{"cosineannealingwarmrestarts", "cosine_restarts"},
    OtherWord{"cosinedecayrestarts", "cosine_restarts"},
    OtherWord{"exponentiallr", "exponential"},
    OtherWord{"exponentialdecay", "exponential"},
    OtherWord{"polynomiallr", "polynomial"},
    OtherWord{"polynomialdecay", "polynomial"},
    OtherWord{"onecyclelr", "one_cycle"},
    OtherWord{"reducelronplateau", "plateau"},
    OtherWord{"lr", "learning_rate"},
    // the rest of a job
    OtherWord{"gpu", "cuda"},
    OtherWord{"bfloat16", "bf16"},
    OtherWord{"float16", "fp16"},
    OtherWord{"half", "fp16"},
    OtherWord{"float32", "fp32"},
    OtherWord{"imagefolder", "images"},
    OtherWord{"dataset", "data"},
    // commands
    OtherWord{"evaluate", "eval"},
    OtherWord{"validate", "check"},
    OtherWord{"fit", "train"},
    OtherWord{"run", "train"},
    OtherWord{"infer", "predict"},
    OtherWord{"inference", "predict"},
    OtherWord{"summary", "show"},
};

/// In small letters, without dashes and underscores.
std::string plain(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    if (c != '-' && c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

}  // namespace

std::string our_word_for(std::string_view word, const std::vector<std::string>& known) {
  const std::string letters = plain(word);
  if (letters.empty()) return "";
  for (const std::string& candidate : known) {
    if (plain(candidate) == letters) return candidate;
  }
  for (const OtherWord& other : kOtherWords) {
    if (other.theirs != letters) continue;
    for (const std::string& candidate : known) {
      if (candidate == other.ours) return candidate;
    }
  }
  return "";
}

}  // namespace lockstep

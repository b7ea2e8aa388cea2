#include "uper/cli/video/recording.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace uper::cli {
namespace {

constexpr int kWindowSeconds = 10;

constexpr Color kEmpty = {0xf2, 0xf2, 0xf2};
constexpr Color kChannelColors[] = {{0x1f, 0x77, 0xb4}, {0xff, 0x7f, 0x0e}, {0x2c, 0xa0, 0x2c},
                                    {0xd6, 0x27, 0x28}, {0x94, 0x67, 0xbd}, {0x8c, 0x56, 0x4b},
                                    {0xe3, 0x77, 0xc2}, {0x17, 0xbe, 0xcf}, {0xbc, 0xbd, 0x22},
                                    {0x7f, 0x7f, 0x7f}};

double ElementAt(const EnvironmentSpec& spec, std::span<const std::byte> observation,
                 std::size_t index) {
  if (spec.element == EnvironmentSpec::Element::kUint8) {
    return std::to_integer<int>(observation[index]);
  }
  float value = 0;
  std::memcpy(&value, &observation[index * sizeof(value)], sizeof(value));
  return double{value};
}

}  // namespace

Picture PictureOf(const EnvironmentSpec& spec, std::span<const std::byte> observation) {
  Picture picture{.height = spec.height, .width = spec.width};
  const bool gray = spec.channels == 1 && spec.element_max > 1;
  const double span = spec.element_max - spec.element_min;
  for (std::size_t pixel = 0; pixel < std::size_t{1} * spec.height * spec.width; ++pixel) {
    Color color = gray ? Color{0, 0, 0} : kEmpty;
    for (int c = 0; c < spec.channels; ++c) {
      const double value = ElementAt(spec, observation, pixel * spec.channels + c);
      const Color full =
          gray ? Color{255, 255, 255} : kChannelColors[c % std::size(kChannelColors)];
      color = Mix(color, full, std::clamp((value - spec.element_min) / span, 0.0, 1.0));
    }
    picture.rgb.insert(picture.rgb.end(), {color.r, color.g, color.b});
  }
  return picture;
}

Recording::Recording(const RecordingOptions& options, Learner& learner,
                     const Environment& environment)
    : options_(options),
      learner_(learner),
      environment_(environment),
      dashboard_(learner.spec(), {.title = options.title,
                                  .subtitle = options.subtitle,
                                  .window_steps = kWindowSeconds * options.steps_per_second}),
      writer_(MakeVideoWriter(options.file, {.width = Dashboard::kWidth,
                                             .height = Dashboard::kHeight,
                                             .pictures_per_second = options.steps_per_second})),
      outputs_(std::size_t{1} * learner.spec().network.actions *
               learner.spec().network.member_outputs()) {}

void Recording::RenderGame(const EvaluationMoment& moment) {
  if (environment_.Render(game_)) return;
  const EnvironmentSpec& spec = environment_.spec();
  const std::int64_t newest = std::min<std::int64_t>(moment.step, spec.frame_stack - 1);
  const std::size_t bytes = spec.observation_bytes();
  game_ = PictureOf(spec, moment.seen.subspan(static_cast<std::size_t>(newest) * bytes, bytes));
}

void Recording::Show(const EvaluationMoment& moment) {
  RenderGame(moment);
  if (!moment.last) {
    learner_.MemberOutputs(moment.seen, outputs_);
    decision_ =
        DescribeDecision(learner_.spec(), outputs_, moment.action, options_.aleatoric_floor);
  }
  writer_->Add(dashboard_.Draw({.game = game_,
                                .decision = decision_,
                                .episode = moment.episode,
                                .step = moment.step,
                                .episode_return = moment.episode_return,
                                .last = moment.last}));
}

}  // namespace uper::cli

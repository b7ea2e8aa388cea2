#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/atari/score_files.h"
#include "experiments/framework/figure.h"

namespace uper::experiments {

// The figures of the paper that are made from training runs. Without Atari they take the runs of
// any other suite that has reference scores.
Figure AtariMedianFigure();
Figure AtariAblationFigure();
Figure AtariBarsFigure();
Figure AtariGamesFigure();
Figure AtariC51Figure();

// The reference scores of a run's suite: those built in, and on top those of the user's file (may
// be empty).
ReferenceScores ReferencesWith(const std::filesystem::path& file, const std::string& suite);

// What a picture from runs is made of; `uper report` fills it with the agents it is given, the
// figures above with the paper's.
struct PictureRequest {
  const ScoreTable& table;
  std::filesystem::path folder;
  std::vector<std::string> agents;    // that have runs, in the order of the legend
  std::vector<std::string> enlarged;  // games, at most four
  std::vector<MissingRun> missing;
  bool published = false;
  int replications = 2000;
  TaskRunner run;
};

// Each writes its CSV files, missing.csv and about.json into the folder.
void WriteMedianPicture(const PictureRequest& request);
void WriteGamesPicture(const PictureRequest& request);
void WriteBarsPicture(const PictureRequest& request, std::span<const AgentPair> pairs);

// Of the paper's four games those that the table has; if none, its first four.
std::vector<std::string> EnlargedGames(const ScoreTable& table);

}  // namespace uper::experiments

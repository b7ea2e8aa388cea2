#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/atari/score_files.h"
#include "experiments/framework/figure.h"

namespace uper::experiments::atari {

// The figures of the paper that are made from training runs: `atari-median`, `atari-ablation`,
// `atari-bars`, `atari-games` and `atari-c51`. They also take runs of any other suite that has
// reference scores.
std::vector<Figure> MakeFigures();

// The reference scores of a run's suite: the built-in scores, overridden by the user's file. `file`
// may be empty.
ReferenceScores ReferencesWith(const std::filesystem::path& file, const std::string& suite);

// The input of a picture from runs. `uper report` sets the agents of its runs; the figures above
// set the paper's agents.
struct PictureRequest {
  const ScoreTable& table;
  std::filesystem::path folder;
  std::vector<std::string> agents;    // agents with runs, in the order of the legend
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

// The paper's four games if the table has them; its first games replace missing ones.
std::vector<std::string> EnlargedGames(const ScoreTable& table);

}  // namespace uper::experiments::atari

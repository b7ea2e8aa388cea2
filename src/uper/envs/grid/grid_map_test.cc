#include "uper/envs/grid/grid_map.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "uper/base/error_for_tests.h"

namespace uper {
namespace {

std::string ParseProblem(std::string_view text) {
  return Refusal([&] { GridMap::Parse(text, "a.map"); });
}

std::string LoadProblem(const std::filesystem::path& file) {
  return Refusal([&] { GridMap::Load(file); });
}

TEST(GridMapTest, ReadsCellsByRowAndColumn) {
  const GridMap map = GridMap::Parse("S.#\n~.G\n", "a.map");
  EXPECT_EQ(map.rows(), 2);
  EXPECT_EQ(map.columns(), 3);
  EXPECT_EQ(map.start(), 0);
  EXPECT_EQ(map.cell(0), GridCell::kStart);
  EXPECT_EQ(map.cell(1), GridCell::kFree);
  EXPECT_EQ(map.cell(2), GridCell::kWall);
  EXPECT_EQ(map.cell(3), GridCell::kNoisy);
  EXPECT_EQ(map.cell(5), GridCell::kGoal);
}

TEST(GridMapTest, LastLineEndIsOptionalAndCarriageReturnsAreDropped) {
  EXPECT_EQ(GridMap::Parse("S.\r\n.G", "a.map").columns(), 2);
}

TEST(GridMapTest, WallsAndEdgesKeepTheAgent) {
  const GridMap map = GridMap::Parse("S#\n.G\n", "a.map");
  EXPECT_EQ(map.Neighbor(0, 0, 1), 0);   // wall
  EXPECT_EQ(map.Neighbor(0, -1, 0), 0);  // edges
  EXPECT_EQ(map.Neighbor(0, 0, -1), 0);
  EXPECT_EQ(map.Neighbor(3, 0, 1), 3);
  EXPECT_EQ(map.Neighbor(3, 1, 0), 3);
  EXPECT_EQ(map.Neighbor(0, 1, 0), 2);
  EXPECT_EQ(map.Neighbor(2, 0, 1), 3);
}

TEST(GridMapTest, DistancesGoAroundWalls) {
  const GridMap map = GridMap::Parse("S#G\n.#.\n...\n##.\n.#.\n", "a.map");
  EXPECT_EQ(map.goal_distance(), 6);
  EXPECT_EQ(map.distances()[0], 0);
  EXPECT_EQ(map.distances()[1], GridMap::kUnreachable);   // a wall
  EXPECT_EQ(map.distances()[8], 4);                       // row 2, column 2
  EXPECT_EQ(map.distances()[12], GridMap::kUnreachable);  // closed off
}

TEST(GridMapTest, NearestOfSeveralGoalsCounts) {
  EXPECT_EQ(GridMap::Parse("G..S.G\n", "a.map").goal_distance(), 2);
  EXPECT_EQ(GridMap::Parse("G#S..G\n", "a.map").goal_distance(), 3);
}

TEST(GridMapTest, RefusesMapsWithoutExactlyOneStart) {
  EXPECT_EQ(ParseProblem("..\n.G\n"), "map a.map: no start 'S'");
  EXPECT_EQ(ParseProblem("S.G\n..S\n"),
            "map a.map: row 2, column 3: a second start 'S' (the first: row 1, column 1)");
}

TEST(GridMapTest, RefusesMapsWithoutReachableGoal) {
  EXPECT_EQ(ParseProblem("S.\n..\n"), "map a.map: no goal 'G'");
  EXPECT_EQ(ParseProblem("S#G\n"), "map a.map: no path from the start 'S' to a goal 'G'");
  EXPECT_EQ(ParseProblem("S#\n#G\n"), "map a.map: no path from the start 'S' to a goal 'G'");
}

TEST(GridMapTest, RefusesRaggedEmptyAndOversizedRows) {
  EXPECT_EQ(ParseProblem(""), "map a.map: it is empty");
  EXPECT_EQ(ParseProblem("S.\n\n.G\n"), "map a.map: row 2 is empty");
  EXPECT_EQ(ParseProblem("\nSG\n"), "map a.map: row 1 is empty");
  EXPECT_EQ(ParseProblem("S.\n..G\n"), "map a.map: row 2 has 3 columns where the first row has 2");
  EXPECT_EQ(ParseProblem("SG" + std::string(GridMap::kMaxColumns, '.')),
            "map a.map: row 1 has more than 100 columns");
  std::string tall;
  for (int row = 0; row <= GridMap::kMaxRows; ++row) tall += "SG\n";
  EXPECT_EQ(ParseProblem(tall), "map a.map: more than 100 rows");
}

TEST(GridMapTest, RefusesUnknownCharacters) {
  const std::string legend = " (# wall, . free, S start, G goal, ~ noisy)";
  EXPECT_EQ(ParseProblem("S.G\n.x.\n"),
            "map a.map: row 2, column 2: unknown character 'x'" + legend);
  EXPECT_EQ(ParseProblem("S G\n"),
            "map a.map: row 1, column 2: unknown character (code 32)" + legend);
  EXPECT_EQ(ParseProblem(std::string_view("S\0G", 3)),
            "map a.map: row 1, column 2: unknown character (code 0)" + legend);
}

TEST(GridMapTest, RefusesFilesThatCannotBeRead) {
  EXPECT_EQ(LoadProblem("/nowhere/a.map"), "map /nowhere/a.map: the file cannot be opened");
  EXPECT_NE(LoadProblem(std::filesystem::temp_directory_path()), "accepted");  // a folder
  EXPECT_NE(LoadProblem("/dev/zero"), "accepted");                             // endless
}

// This file is src/uper/envs/grid/grid_map_test.cc of the repository.
std::filesystem::path ConfigFile() {
  return std::filesystem::path(__FILE__).parent_path() / "../../../../configs/gridworld.map";
}

TEST(DefaultGridMapTest, IsTheFileInConfigs) {
  std::ifstream file(ConfigFile(), std::ios::binary);
  ASSERT_TRUE(file.is_open()) << ConfigFile();
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, DefaultGridMapText());
  EXPECT_EQ(GridMap::Load(ConfigFile()).goal_distance(), DefaultGridMap().goal_distance());
}

TEST(DefaultGridMapTest, HasTheDescribedProperties) {
  const GridMap map = DefaultGridMap();
  EXPECT_EQ(map.goal_distance(), 16);
  int noisy = 0;
  int goals = 0;
  for (int cell = 0; cell < map.cell_count(); ++cell) {
    if (map.cell(cell) == GridCell::kGoal) ++goals;
    if (map.cell(cell) != GridCell::kNoisy) continue;
    ++noisy;
    EXPECT_LT(map.distances()[cell], map.goal_distance() / 4) << "noise is met early";
  }
  EXPECT_EQ(noisy, 3);
  EXPECT_EQ(goals, 1);
}

}  // namespace
}  // namespace uper

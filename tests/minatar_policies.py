"""Policies that read the package's game object and play well enough to reach its deep states.

Each is policy(game, generator) -> action, with the actions no-op, left, up, right, down, fire.
"""

NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
MOVES = {NOOP: (0, 0), LEFT: (-1, 0), RIGHT: (1, 0), UP: (0, -1), DOWN: (0, 1)}


def random(game, generator):
    return generator.integers(6)


def _clip(value, low, high):
    return min(max(value, low), high)


def asterix(game, generator):
    """Keeps away from enemies of its lane and of the lanes beside, goes for gold while that is easy."""
    gold = [entity for entity in game.entities if entity and entity[3]]

    def score(action):
        x, y = _clip(game.player_x + MOVES[action][0], 0, 9), _clip(game.player_y + MOVES[action][1], 1, 8)
        value = generator.random() - 0.5 * abs(x - 4.5)  # newcomers start at the walls
        for row in (y - 1, y, y + 1):
            entity = game.entities[row - 1] if 1 <= row <= 8 else None
            if entity and not entity[3]:
                ahead = (x - entity[0]) * (1 if entity[2] else -1)  # cells until it is here
                if row == y and 0 <= ahead <= 5:
                    value -= 100 * (6 - ahead)
                elif row != y and 0 <= ahead <= 2:
                    value -= 10
        if gold and game.ramp_index < 6:
            value -= min(abs(x - entity[0]) + 2 * abs(y - entity[1]) for entity in gold)
        return value

    return max(MOVES, key=score)


def breakout(game, generator):
    """Meets the ball from above or, half of the time, from the side."""
    step = 1 if game.ball_dir in (1, 2) else -1
    x, y, down = game.ball_x, game.ball_y, game.ball_dir in (2, 3)
    target = x
    if down:  # where the ball will be above the bottom row, by reflection at the walls
        for _ in range(8 - y):
            if not 0 <= x + step <= 9:
                step = -step
            else:
                x += step
        aside = x + step if 0 <= x + step <= 9 else x
        target = aside if (game.last_y + game.pos) % 2 else x
        if y == 8 and game.pos in (x, aside):
            return NOOP
    return NOOP if target == game.pos else RIGHT if target > game.pos else LEFT


def freeway(game, generator):
    """Up, with some hesitation."""
    return generator.choice([UP, DOWN, NOOP], p=[0.9, 0.05, 0.05])


def space_invaders(game, generator):
    """Shoots where an alien will be, keeps near such columns and out of the way of bullets."""
    hits = _space_invaders_hits(game)

    def danger(x):
        return game.e_bullet_map[7:9, x].any() or game.alien_map[9, x]

    def value(action):
        x = _clip(game.pos + MOVES[action][0], 0, 9)
        # An alien met soon is a low one: these first.
        aim = min((2 * abs(x - column) + delay for column, delay in hits.items()), default=0)
        return -100 * danger(x) - aim + 0.1 * generator.random()

    if game.shot_timer == 0 and game.pos in hits and not danger(game.pos):
        return FIRE
    return max((NOOP, LEFT, RIGHT), key=value)


def sparing_space_invaders(game, generator):
    """Lets the aliens come down: shoots the lowest row except for its leftmost alien, which then reaches the bottom row
    with the cannon safe behind it, turns at the wall and wins; or the cannon runs into it."""
    lowest = max(row for row in range(10) if game.alien_map[row].any())
    columns = [column for column in range(10) if game.alien_map[lowest, column]]
    if lowest == 9 and generator.random() < 0.3:
        return LEFT  # into the alien, sooner or later
    if len(columns) > 1 and game.shot_timer == 0 and game.pos in columns[1:]:
        return FIRE

    def value(action):
        x = _clip(game.pos + MOVES[action][0], 0, 9)
        target = columns[-1] if len(columns) > 1 else 8
        return -100 * game.e_bullet_map[7:9, x].any() - abs(x - target) + 0.1 * generator.random()

    return max((NOOP, LEFT, RIGHT), key=value)


def _space_invaders_hits(game):
    """Column -> steps until a shot fired there now meets an alien."""
    rows = [sum(1 << column for column in range(10) if row[column]) for row in game.alien_map]
    timer, going_left, hits = game.alien_move_timer, game.alien_dir < 0, {}
    for delay in range(1, 10):
        if timer == 0:
            timer = min(sum(row.bit_count() for row in rows), game.enemy_move_interval)
            if any(row & (1 if going_left else 512) for row in rows):
                going_left = not going_left
                rows = [0] + rows[:-1]
            else:
                rows = [row >> 1 if going_left else row << 1 for row in rows]
        timer -= 1
        for column in range(10):
            if rows[9 - delay] >> column & 1:
                hits.setdefault(column, delay)
    return hits


class Seaquest:
    """Fetches six divers, surfaces with them, then bobs at the surface until the game is at its hardest, and fights on there."""

    def __call__(self, game, generator):
        action = self._plan(game, generator)
        safe = [move for move in MOVES if not self._danger(game, move)]
        if action in safe or action == FIRE and NOOP in safe or not safe:
            return action
        return safe[generator.integers(len(safe))]

    def _plan(self, game, generator):
        if game.diver_count < 0:  # surfacing is free now, and ramps
            if game.e_spawn_speed > 1 or game.oxygen < 40:
                return DOWN if game.sub_y == 0 else UP
            return FIRE if game.shot_timer == 0 else generator.choice([LEFT, RIGHT, UP, DOWN])
        urgent = game.oxygen <= game.sub_y + 12
        if (urgent and game.diver_count > 0) or (game.diver_count == 6 and game.oxygen < 100):
            return UP  # till then more divers are met than there is room for
        if self._target_ahead(game) and game.shot_timer == 0:
            return FIRE
        return self._fetch(game, generator)

    @staticmethod
    def _target_ahead(game):
        ahead = 1 if game.sub_or else -1
        return any(enemy[1] == game.sub_y and (enemy[0] - game.sub_x) * ahead > 0
                   for enemy in game.e_fish + game.e_subs)

    @staticmethod
    def _fetch(game, generator):
        if not game.divers:
            return DOWN if game.sub_y < 4 else generator.choice([LEFT, RIGHT, NOOP])
        x, y = min(game.divers, key=lambda diver: abs(diver[0] - game.sub_x) + abs(diver[1] - game.sub_y))[:2]
        if y != game.sub_y and generator.random() < 0.7:
            return DOWN if y > game.sub_y else UP if game.sub_y > 1 else NOOP
        return RIGHT if x > game.sub_x else LEFT if x < game.sub_x else NOOP

    @staticmethod
    def _danger(game, action):
        """Whether something that kills is in the cell, or could be there after its next move or two."""
        x, y = _clip(game.sub_x + MOVES[action][0], 0, 9), _clip(game.sub_y + MOVES[action][1], 0, 8)
        if y == 0 and not game.surface and game.diver_count == 0:
            return True
        swimmers = [(enemy, 1 if enemy[3] > 1 else 2) for enemy in game.e_fish + game.e_subs]
        for entity, reach in swimmers + [(bullet, 2) for bullet in game.e_bullets]:
            ahead = (x - entity[0]) * (1 if entity[2] else -1)
            if entity[1] == y and 0 <= ahead <= reach:
                return True
        return False


def careless_seaquest(game, generator):
    """Dives, shoots and stays down until the oxygen is gone, or touches whatever comes."""
    if game.sub_y < 2:
        return DOWN
    return generator.choice([FIRE, LEFT, RIGHT, NOOP, UP if game.sub_y > 1 else DOWN, DOWN])

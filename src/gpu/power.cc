#include "gpu/power.h"

#include <algorithm>
#include <string>

namespace tessera::gpu {

base::Result<Power> power_limits(const Model& model, std::string_view board) {
  if (board.empty()) return model.power();
  const auto at = std::ranges::find(model.boards, board, &Board::name);
  if (at != model.boards.end()) return at->power;
  const Match match = find(board);
  if (match.model == &model) return match.board->power;
  std::string names;
  for (const Board& one : model.boards)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  return base::error(base::Code::kNotFound, "{} has no board \"{}\"; use one of {}", model.name,
                     board.substr(0, 64), names);
}

}  // namespace tessera::gpu

# What does each operation keep for backward? A sigmoid keeps its result, a square its input, a sum nothing.
# Rest the mouse on an operation, or put the cursor there, and read its row.
import torch

x = torch.rand(4, requires_grad=True)

kept_result = torch.sigmoid(x)
kept_result += 1  # expect: GG101

hidden = x * 2
kept_input = hidden.square()
hidden.zero_()  # expect: GG101

free = x + 1
free *= 3  # nothing kept it

(kept_result.sum() + kept_input.sum() + free.sum()).backward()

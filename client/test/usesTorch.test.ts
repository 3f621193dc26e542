import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usesTorch } from '../src/usesTorch';

test('a file uses torch where it imports it, and only there', () => {
    const uses = ['import torch', '  import torch.nn as nn', 'import os, torch', 'from torch import nn', 'x = 1\r\nfrom torch.nn import *', 'import lightning as L'];
    const not = ['# import torch', 'torch = 1', 'import torchlike', "print('import torch')", 'from .torch import x', ''];
    assert.deepEqual([uses.filter(text => !usesTorch(text)), not.filter(usesTorch)], [[], []]);
});

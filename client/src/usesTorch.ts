/** Whether a text imports torch, or a package that is used with nothing else. */
export function usesTorch(text: string): boolean {
    return /^[ \t]*(?:import|from)[ \t]+(?:[\w., \t]*,[ \t]*)?(?:torch|lightning|pytorch_lightning|torchvision)\b/m.test(text);
}

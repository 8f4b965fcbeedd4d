# jobgen slurm --site ./site.toml --nodes 1 --gpus-per-node 4 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=24
#SBATCH --gres=npu:4
#SBATCH --mem=732G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=npu
# jobgen: note: the launcher is srun, that of site site
